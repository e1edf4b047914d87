import { describe, expect, test } from 'vitest';
import { everyCell, faults, nameOf, stages } from '../support/faults/cell.js';
import { exclusions, generateMatrix } from '../support/faults/exclusions.js';
import { expectedEnds } from '../support/faults/expectations.js';
import { sampleOf } from '../support/faults/sample.js';

const { cells, excluded } = generateMatrix();

describe('the matrix of faults', () => {
  test('has every cell once: run, or excluded by a rule', () => {
    const names = [...cells, ...excluded.map(({ cell }) => cell)].map(nameOf);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBe(everyCell().length);
  });

  test.each(exclusions.map((rule) => [rule.name, rule] as const))(
    'excludes by "%s" something, with a reason',
    (_, rule) => {
      expect(excluded.some(({ by }) => by === rule)).toBe(true);
      expect(rule.reason).not.toBe('');
    },
  );

  test('says of every cell what it must come to', () => {
    expect(cells.filter((cell) => expectedEnds(cell) === undefined).map(nameOf)).toEqual([]);
  });

  test('leaves every stage and every fault something to do', () => {
    for (const fault of faults) expect(cells.some((cell) => cell.fault === fault)).toBe(true);
    for (const stage of stages) expect(cells.some((cell) => cell.stage === stage)).toBe(true);
  });

  test('has a sample with every fault, and every stage of either side, on both devices', () => {
    const sample = sampleOf(cells);
    const traits = (all: readonly (typeof cells)[number][]) =>
      new Set(
        all.flatMap(({ device, side, stage, fault }) => [
          `${device}, ${fault}`,
          `${device}, ${side}, ${stage}`,
        ]),
      );
    expect(traits(sample)).toEqual(traits(cells));
    expect(sample.length).toBeLessThan(cells.length / 6);
  });
});
