import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { runProgram } from './program.js';

const xzMagic = Buffer.from('\xfd7zXZ\0', 'latin1');

/**
 * Writes the kernel in the boot image `vmlinuz` to `target`, unpacked: QEMU starts that as well (through PVH), and an
 * emulated processor needs three seconds to unpack it. A kernel that is compressed in another way stays as it is.
 */
export async function unpackKernel(vmlinuz: string, target: string): Promise<void> {
  const payload = findPayload(await readFile(vmlinuz));
  if (!payload.subarray(0, xzMagic.length).equals(xzMagic)) {
    await copyFile(vmlinuz, target);
    return;
  }
  const packed = `${target}.xz`;
  await writeFile(packed, payload);
  await runProgram(['xz', '-d', packed]);
}

/** The compressed kernel in a boot image, by the header of Documentation/arch/x86/boot.rst. */
function findPayload(image: Buffer): Buffer {
  const setupSectors = image.readUInt8(0x1f1);
  const start = (setupSectors + 1) * 512 + image.readUInt32LE(0x248);
  // The last four bytes are the unpacked size, no part of the compressed data.
  return image.subarray(start, start + image.readUInt32LE(0x24c) - 4);
}
