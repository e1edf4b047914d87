import { InvalidArgumentError } from 'commander';

interface Range {
  readonly minimum: number;
  readonly maximum: number;
}

const units = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 } as const;

/** A parser for an option that takes a whole number. */
export function wholeNumber({ minimum, maximum }: Range): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(`It takes a whole number from ${minimum} to ${maximum}.`);
  };
}

/** A parser for an option that takes seconds, with a fraction if need be; gives whole milliseconds. */
export function seconds({ minimum, maximum }: Range): (text: string) => number {
  return (text) => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (value >= minimum && value <= maximum) return Math.round(value * 1000);
    throw new InvalidArgumentError(`It takes seconds, from ${minimum} to ${maximum}.`);
  };
}

/** A parser for an option that takes bytes: `4096`, `4k`, `1M`. */
export function bytes({ minimum, maximum }: Range): (text: string) => number {
  return (text) => {
    const [, digits, unit] = /^(\d+)([kmg]?)$/i.exec(text) ?? [];
    const value = Number(digits) * (unit ? units[unit.toLowerCase() as keyof typeof units] : 1);
    if (value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(`It takes bytes, from ${minimum} to ${maximum}, as in 4096 or 4k.`);
  };
}
