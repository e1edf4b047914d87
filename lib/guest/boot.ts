import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Duplex, Readable, Writable } from 'node:stream';
import type { Image } from './image.js';
import { ports } from './init.js';
import type { GuestOptions } from './options.js';
import { shareTag } from './session.js';
import { StreamEnd } from './stream-end.js';

export type GuestEnd =
  | { readonly why: 'status'; readonly status: number }
  | { readonly why: 'time limit' }
  | { readonly why: 'stopped' }
  /** QEMU has ended without a status: a panic, most of the time. `console` is what the kernel said last. */
  | { readonly why: 'died'; readonly console: string };

type BootOptions = Pick<GuestOptions, 'memory' | 'cpus' | 'shares' | 'kernelPeerToPeer' | 'timeLimit'>;

interface Streams {
  readonly output: Writable;
  readonly errors: Writable;
  /** Ends the guest at once. */
  readonly stop: AbortSignal;
}

/** Boots `image`, runs `script` in it, and ends the guest. Nothing of it is left when the promise settles. */
export async function runGuest(
  image: Image,
  script: string,
  options: BootOptions,
  { output, errors, stop }: Streams,
): Promise<GuestEnd> {
  const marker = randomBytes(24).toString('hex');
  const qemu = startQemu(image, options);
  const gone = new Promise<void>((resolve, reject) => {
    qemu.once('error', reject);
    qemu.once('close', () => resolve());
  });
  // stdio of the child, from 3 on, in the order of startQemu.
  const [outputPort, errorPort, controlPort] = qemu.stdio.slice(3) as [Duplex, Duplex, Duplex];
  const consoleTail = [tail(qemu.stdout), tail(qemu.stderr)];
  const endings = [forward(outputPort, output, marker), forward(errorPort, errors, marker)];

  let why: 'time limit' | 'stopped' | undefined;
  const end = (reason: typeof why) => {
    why ??= reason;
    qemu.kill('SIGKILL');
    // Whoever should read the output may never do so again, and nobody would ever see its end.
    for (const ending of endings) ending.destroy();
    for (const port of [outputPort, errorPort]) port.destroy();
  };
  const onStop = () => end('stopped');
  stop.addEventListener('abort', onStop);
  if (stop.aborted) onStop();
  const timer = setTimeout(end, options.timeLimit * 1000, 'time limit');

  // Reset when the guest dies early; its death is told by the end of the process.
  controlPort.on('error', () => {});
  controlPort.write(`${marker} ${Buffer.byteLength(script)}\n${script}`);

  const [status] = await Promise.all(endings.map((ending) => ending.trailer));
  if (status !== undefined) qemu.kill('SIGKILL');
  await gone.finally(() => {
    clearTimeout(timer);
    stop.removeEventListener('abort', onStop);
  });
  if (status !== undefined) return { why: 'status', status: Number(status) };
  return why === undefined ? { why: 'died', console: consoleTail.map((text) => text()).join('') } : { why };
}

function startQemu(
  image: Image,
  options: BootOptions,
): ChildProcess & { stdout: Readable; stderr: Readable } {
  const { memory, cpus, shares, kernelPeerToPeer } = options;
  const kernelLine = [
    'console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable',
    ...(kernelPeerToPeer ? ['SIW=siw-peer-to-peer'] : []),
  ];
  const port = (name: keyof typeof ports, descriptor: number) => [
    ...['-chardev', `socket,id=${name},fd=${descriptor}`],
    ...['-device', `virtserialport,chardev=${name},nr=${ports[name]}`],
  ];
  const child = spawn(
    // Whatever way this process dies, QEMU dies with it.
    'setpriv',
    [
      ...['--pdeathsig', 'KILL', '--', 'qemu-system-x86_64'],
      ...['-accel', 'tcg,thread=multi', '-cpu', 'max', '-m', String(memory), '-smp', String(cpus)],
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-serial', 'stdio', '-no-reboot'],
      ...['-kernel', join(image.folder, 'vmlinux'), '-initrd', join(image.folder, 'initrd')],
      ...['-append', kernelLine.join(' '), '-device', 'virtio-rng-pci', '-device', 'virtio-serial-pci'],
      ...port('output', 3),
      ...port('errors', 4),
      ...port('control', 5),
      ...folder('root', '/', ',readonly=on,multidevs=remap'),
      ...shares.flatMap((share, index) => folder(shareTag(index), share, ',multidevs=remap')),
    ],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'] },
  );
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('spawn made no pipes');
  return Object.assign(child, { stdout, stderr });
}

function folder(tag: string, path: string, options: string): string[] {
  // QEMU's option parser reads two commas as one.
  return [
    '-virtfs',
    `local,path=${path.replaceAll(',', ',,')},mount_tag=${tag},security_model=none${options}`,
  ];
}

function forward(port: Duplex, target: Writable, marker: string): StreamEnd {
  const end = new StreamEnd(marker);
  port.on('error', () => end.end());
  port.pipe(end).pipe(target, { end: false });
  return end;
}

/** @returns a function that returns the last 16 KiB of what the stream carried. */
function tail(stream: Readable): () => string {
  let kept = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-16_384);
  });
  return () => kept.toString();
}
