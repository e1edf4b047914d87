import type { Cell } from './cell.js';

/** What a sample has to have seen once. */
function traitsOf({ device, side, stage, fault }: Cell): string[] {
  return [`${device}: ${fault}`, `${device}, ${side}: ${stage}`];
}

/** Few cells in which every fault, and every stage of either side, comes up on every kind of device. */
export function sampleOf(cells: readonly Cell[]): Cell[] {
  const wanted = new Set(cells.flatMap(traitsOf));
  const news = (cell: Cell) => traitsOf(cell).filter((trait) => wanted.has(trait)).length;
  const sample: Cell[] = [];
  // Faults whose cells are few first, or they would each need a cell more in the end.
  for (const cell of [...cells].sort((a, b) => rarity(cells, a) - rarity(cells, b))) {
    if (news(cell) < 2) continue;
    sample.push(cell);
    for (const trait of traitsOf(cell)) wanted.delete(trait);
  }
  for (const cell of cells) {
    if (news(cell) === 0) continue;
    sample.push(cell);
    for (const trait of traitsOf(cell)) wanted.delete(trait);
  }
  return sample;
}

function rarity(cells: readonly Cell[], { fault }: Cell): number {
  return cells.filter((cell) => cell.fault === fault).length;
}
