/** What a command says on stdout: lines for a person or, with `--json`, one JSON value a line. */
export class Output {
  readonly #json: boolean;
  readonly #write: (text: string) => void;

  constructor(json: boolean, write = (text: string): void => void process.stdout.write(text)) {
    this.#json = json;
    this.#write = write;
  }

  person(text: string): void {
    if (!this.#json) this.#write(`${text}\n`);
  }

  machine(value: unknown): void {
    if (this.#json) this.#write(`${JSON.stringify(value)}\n`);
  }
}

/** An error as a program can read it: `code`, `syscall` and so on are there where the error has them. */
export function errorRecord(error: unknown): { error: Record<string, unknown> } {
  if (!(error instanceof Error)) return { error: { message: String(error) } };
  const { code, errno, syscall, address, port } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
  };
  return { error: { code, message: error.message, errno, syscall, address, port } };
}

/** An error as a person reads it, on one line: the code first, unless the message has it already. */
export function errorLine(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined || error.message.includes(code) ? error.message : `${code}: ${error.message}`;
}
