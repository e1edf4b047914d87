import { type ConnectionOptions, normalizeConnectionOptions } from '../connection/options.js';
import { invalidArgumentType, invalidArgumentValue, requireOptions } from '../errors.js';

/** Options of the connections between ranks: `timeout` and private data are the job's own affair. */
export type RankConnectionOptions = Omit<ConnectionOptions, 'signal' | 'privateData' | 'timeout'>;

export interface JoinOptions {
  /** Of every connection of the job, whoever asks for it. */
  connection?: RankConnectionOptions | undefined;
  /** File name of libpmix; default `libpmix.so.2`. */
  library?: string | undefined;
}

/** For what a rank accepts: the one that has asked gives up by a time-out of its own. */
const timeout = 60_000;

/** A rank that is gone without a word (its node has lost power) is missed after so many milliseconds. */
const keepAlive = { interval: 5000 };

/** @throws for invalid options */
export function normalizeJoinOptions(options: JoinOptions = {}): {
  connection: ConnectionOptions;
  library: string | undefined;
} {
  requireOptions('options', options);
  const { library } = options;
  if (library !== undefined && typeof library !== 'string') {
    throw invalidArgumentType('options.library', 'a string', library);
  }
  if (library === '' || library?.includes('\0')) {
    throw invalidArgumentValue('options.library', library, 'must be the name of a file');
  }
  requireOptions('options.connection', options.connection);
  const given = { ...options.connection };
  for (const name of ['signal', 'privateData', 'timeout', 'peerToPeer', 'flowControl']) {
    if (name in given)
      throw invalidArgumentValue(`options.connection.${name}`, '', 'is not for ranks of a job');
  }
  const connection = { timeout, keepAlive, ...given };
  normalizeConnectionOptions(connection, true);
  return { connection, library };
}
