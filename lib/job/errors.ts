import { RdmaError, type RdmaErrorOptions } from '../errors.js';

/** What went wrong with one rank; `code` and `cause` are those of the error behind it. */
export class RankError extends RdmaError {
  override readonly name = 'RankError';
  readonly rank: number;

  constructor(rank: number, code: string, message: string, options: RdmaErrorOptions = {}) {
    super(code, `rank ${rank}: ${message}`, options);
    this.rank = rank;
  }

  /** @internal */
  static from(rank: number, error: Error): RankError {
    if (error instanceof RankError) return error;
    if (!(error instanceof RdmaError))
      return new RankError(rank, 'ERR_RDMA_RANK', error.message, { cause: error });
    const { name: _, code, ...details } = error;
    return new RankError(rank, code, error.message, { ...details, cause: error });
  }
}

/** Ranks that could not be reached, all of them: `ERR_RDMA_RANKS_UNREACHABLE`. */
export class RanksUnreachableError extends RdmaError {
  override readonly name = 'RanksUnreachableError';
  readonly ranks: readonly number[];
  /** Why, one for each of {@link ranks}. */
  readonly errors: readonly RankError[];

  constructor(errors: readonly RankError[], asked: number) {
    const sorted = errors.toSorted((a, b) => a.rank - b.rank);
    const list = sorted.map(({ message }) => message).join('; ');
    super('ERR_RDMA_RANKS_UNREACHABLE', `${errors.length} of ${asked} ranks can't be reached: ${list}`);
    this.ranks = sorted.map(({ rank }) => rank);
    this.errors = sorted;
  }
}
