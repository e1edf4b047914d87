/** Programs of busybox that the first process of the guest calls by name. */
export const applets = [
  'cat',
  'chroot',
  'head',
  'insmod',
  'ln',
  'killall5',
  'mkdir',
  'mkfifo',
  'mount',
  'setsid',
  'sh',
];

/**
 * The virtio ports between guest and host, by their numbers. Over `control` the host sends a line, a marker and the
 * length of a script, and then the script. The other two carry what the script writes; each ends with the marker and the
 * script's exit status in a line.
 */
export const ports = { output: 1, errors: 2, control: 3 } as const;

/** The first process: it makes the root file system, runs the host's script in it, and tells how that ended. */
export const init = `#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
while read -r module; do
  [ "$module" = siw.ko ] && module=\${SIW:-siw}.ko
  insmod "/modules/$module"
done </modules/order
set -e
# The driver makes the ports in a work queue of its own. All three, or a redirection would make a file in place of one.
for port in ${Object.values(ports).join(' ')}; do
  until [ -c /dev/vport*p$port ]; do sleep 0.01; done
done
exec 3>$(echo /dev/vport*p${ports.output}) 4>$(echo /dev/vport*p${ports.errors}) 5<$(echo /dev/vport*p${ports.control})

mkdir -p /mnt/lower /mnt/upper /mnt/root
mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576,cache=loose,ro root /mnt/lower
mount -t tmpfs tmpfs /mnt/upper
mkdir /mnt/upper/files /mnt/upper/work
mount -t overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper/files,workdir=/mnt/upper/work overlay /mnt/root
mount -t proc proc /mnt/root/proc
mount -t sysfs sysfs /mnt/root/sys
mount -t devtmpfs dev /mnt/root/dev
mkdir /mnt/root/dev/pts /mnt/root/dev/shm
# These are udev's work elsewhere.
ln -s /proc/self/fd /mnt/root/dev/fd
ln -s /proc/self/fd/0 /mnt/root/dev/stdin
ln -s /proc/self/fd/1 /mnt/root/dev/stdout
ln -s /proc/self/fd/2 /mnt/root/dev/stderr
mount -t devpts devpts /mnt/root/dev/pts
mount -t tmpfs tmpfs /mnt/root/dev/shm
# The host's sockets, locks and network namespaces mean nothing here.
mount -t tmpfs tmpfs /mnt/root/run
mkdir -p /mnt/root/run/lock /mnt/root/run/netns

read -r end length <&5
head -c "$length" <&5 >/mnt/root/run/session
# A port is for one process at a time, but programs open their output anew, through /dev/stderr for one: so they get
# pipes, which these two empty.
mkfifo /output /errors
cat </output >&3 &
cat </errors >&4 &
ulimit -l unlimited
mount -t cgroup2 cgroup2 /cgroup
mkdir /cgroup/session
set +e
setsid sh -c 'echo 0 >/cgroup/session/cgroup.procs; exec chroot /mnt/root /bin/bash /run/session' \\
  </dev/null >/output 2>/errors 3>&- 4>&- 5<&-
status=$?
# What the session has left behind holds the pipes open.
echo 1 >/cgroup/session/cgroup.kill
wait
printf '%s%s\\n' "$end" "$status" >&4
printf '%s%s\\n' "$end" "$status" >&3
# The host ends the guest when it has read that.
cat <&5
`;
