// One side of what is measured, in a process of its own that carries out one task after another: tasks and news over IPC.
import { runSide } from './programs.js';
import type { SideNews, SideTask } from './side-process.js';

const tell = (news: SideNews) => void process.send!(news);

process.on('message', ({ call, address, port }: SideTask) => {
  runSide(call, address, port, (listening) => tell({ listening })).then(
    (sample) => tell({ sample }),
    (error: Error) => tell({ error: `${call.program}: ${error.stack ?? error.message}` }),
  );
});
