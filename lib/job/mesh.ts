/** Whether, of a pair in a full mesh, rank `self` asks rank `other`: each rank asks one half of the others. */
export function initiates(self: number, other: number, size: number): boolean {
  const distance = (other - self + size) % size;
  return distance * 2 < size || (distance * 2 === size && self < other);
}

/** Runs `task` for each item, `limit` at once; rejects with the first error, after which no other is started. */
export async function forEachLimited<T>(
  items: readonly T[],
  limit: number,
  task: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const work = async () => {
    for (const item of rest) await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
}
