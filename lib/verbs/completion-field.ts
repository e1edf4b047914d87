import { invalidArgumentType, requireOneOf } from '../errors.js';

const fieldBits = { timestamp: 1, wallclock: 2 } as const;

/** What a completion of an extended queue can have: `ibv_create_cq_ex(3)`. */
export type CompletionField = keyof typeof fieldBits;

export function completionFields(mask: number): CompletionField[] {
  return (Object.keys(fieldBits) as CompletionField[]).filter((field) => (mask & fieldBits[field]) !== 0);
}

export function completionFieldMask(fields: readonly CompletionField[]): number {
  if (!Array.isArray(fields)) throw invalidArgumentType('options.fields', 'an array of field names', fields);
  const names = Object.keys(fieldBits) as CompletionField[];
  return fields.reduce((mask, field) => mask | fieldBits[requireOneOf('options.fields', field, names)], 0);
}
