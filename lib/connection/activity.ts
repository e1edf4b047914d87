/**
 * Watches for traffic: a connection without any is closed, or probed, after a time. Timers of their own keep no process
 * alive.
 */
export class Activity {
  #idle: NodeJS.Timeout | undefined;
  #keepAlive: NodeJS.Timeout | undefined;

  start(
    idleTimeout: number | undefined,
    keepAliveInterval: number | undefined,
    on: { idle: () => void; probe: () => void },
  ): void {
    if (idleTimeout !== undefined) this.#idle = setTimeout(on.idle, idleTimeout).unref();
    if (keepAliveInterval !== undefined) {
      const probe = () => {
        on.probe();
        this.#keepAlive?.refresh();
      };
      this.#keepAlive = setTimeout(probe, keepAliveInterval).unref();
    }
  }

  /** The probe's own completion is no sign of use. */
  seen(): void {
    this.#idle?.refresh();
    this.#keepAlive?.refresh();
  }

  stop(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#keepAlive);
    this.#idle = undefined;
    this.#keepAlive = undefined;
  }
}
