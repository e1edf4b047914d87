/** Waiting for something that is looked at again whenever a change is announced. */
export class Condition {
  readonly #waiting = new Set<() => void>();

  announce(): void {
    for (const look of [...this.#waiting]) look();
  }

  /**
   * Resolves with the first thing that `look` gives, now or after an announcement, that is not null, and rejects
   * with what it throws. When the time is up, `timeUp` settles the wait.
   */
  async wait<T>(
    look: () => T | null,
    within: number,
    timeUp: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
  ): Promise<T> {
    const present = look();
    if (present !== null) return present;
    return await new Promise<T>((resolve, reject) => {
      const finish = (settle: () => void) => {
        this.#waiting.delete(lookAgain);
        clearTimeout(timer);
        settle();
      };
      const lookAgain = () => {
        try {
          const found = look();
          if (found !== null) finish(() => resolve(found));
        } catch (error) {
          finish(() => reject(error));
        }
      };
      const timer = setTimeout(() => finish(() => timeUp(resolve, reject)), within);
      this.#waiting.add(lookAgain);
    });
  }
}
