/** One word of POSIX shell that expands to exactly `text`, whatever is in it. */
export function quoteWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A POSIX shell command line that runs `argv` with exactly these arguments. */
export function quoteCommand(argv: readonly string[]): string {
  return argv.map(quoteWord).join(' ');
}
