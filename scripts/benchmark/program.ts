import type { Sample } from './sample.js';

export interface ServerTask<Options> {
  /** Where to listen. */
  readonly address: string;
  readonly options: Options;
  /** To be called with the port when a client can come. */
  readonly listening: (port: number) => void;
}

export interface ClientTask<Options> {
  readonly address: string;
  readonly port: number;
  readonly options: Options;
}

/** Both sides of something that is measured, each in a process of its own. What the client returns counts. */
export interface Program<Options> {
  serve(task: ServerTask<Options>): Promise<Sample>;
  connect(task: ClientTask<Options>): Promise<Sample>;
}
