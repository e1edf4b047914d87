{
  "variables": {
    "sanitizers%": 0,
    "sources": [
      "native/addon.cc",
      "native/environment.cc",
      "native/cm/address.cc",
      "native/cm/address_info.cc",
      "native/cm/cm_id.cc",
      "native/cm/cm_id_functions.cc",
      "native/cm/connection_functions.cc",
      "native/cm/event_channel.cc",
      "native/job/pmix.cc",
      "native/job/pmix_library.cc",
      "native/loop/mailbox.cc",
      "native/loop/watcher.cc",
      "native/loop/worker_pool.cc",
      "native/memory/mapping.cc",
      "native/memory/memory_region.cc",
      "native/memory/memory_window.cc",
      "native/ring/completion_delivery.cc",
      "native/ring/request_check.cc",
      "native/ring/request_ring.cc",
      "native/ring/work_queue.cc",
      "native/support/arguments.cc",
      "native/support/handle_table.cc",
      "native/support/object.cc",
      "native/verbs/address_handle.cc",
      "native/verbs/address_vector.cc",
      "native/verbs/completion_channel.cc",
      "native/verbs/completion_queue.cc",
      "native/verbs/context_registry.cc",
      "native/verbs/device.cc",
      "native/verbs/device_queries.cc",
      "native/verbs/extended_poll.cc",
      "native/verbs/protection_domain.cc",
      "native/verbs/queue_pair.cc",
      "native/verbs/queue_pair_attributes.cc",
      "native/verbs/queue_pair_functions.cc",
      "native/verbs/shared_receive_queue.cc",
      "native/verbs/shared_receive_queue_functions.cc"
    ]
  },
  "target_defaults": {
    "include_dirs": ["native", "<!(node -p \"require('node-addon-api').include_dir\")"],
    "defines": [
      "NAPI_VERSION=8",
      "NODE_ADDON_API_DISABLE_DEPRECATED",
      "NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS",
      # In a worker that is being terminated nothing can be thrown any more; without this the process aborts.
      "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
    ],
    "cflags": ["-Wall", "-Wextra", "-Wno-unused-parameter", "-fvisibility=hidden"],
    "cflags_cc!": ["-std=gnu++17", "-std=gnu++14"],
    "cflags_cc": ["-std=gnu++20", "-fno-exceptions", "-fvisibility-inlines-hidden"],
    "libraries": ["-lrdmacm", "-libverbs", "-ldl"],
    # Node unloads an addon with the last environment that has it, a worker's for example; the threads of the pool stay.
    "ldflags": ["-Wl,-z,nodelete"]
  },
  "targets": [
    {
      "target_name": "node_rdma",
      "sources": ["<@(sources)"],
      "configurations": { "Release": { "defines": ["NDEBUG"] } }
    }
  ],
  "conditions": [
    [
      "sanitizers==1",
      {
        "targets": [
          {
            "target_name": "node_rdma_asan",
            "product_dir": "<(PRODUCT_DIR)/asan",
            "sources": ["<@(sources)"],
            "cflags": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"],
            "cflags!": ["-O3"],
            "ldflags": ["-fsanitize=address,undefined"],
            # With assertions, those of the standard library too: this is the debug build that every test run has.
            "defines": ["_GLIBCXX_ASSERTIONS"]
          }
        ]
      }
    ]
  ]
}
