import type { Device, MemoryRegion } from '../verbs/index.js';
import { ProtectionDomain } from '../verbs/index.js';
import { StagingPool } from './staging.js';

const pageSize = 4096;

/** A protection domain and what the connections in it share. */
export class Domain {
  readonly pd: ProtectionDomain;
  /**
   * A page for 0-byte requests of both sides, and for nothing else. Its key is told to peers: rxe checks the key of a
   * 0-byte Read when it retries one, so the page must be open to Reads and Writes.
   */
  readonly page: MemoryRegion;
  /** Copies of data on its way out. */
  readonly sources: StagingPool;
  /** Sinks of Reads; apart from the sources, because on iWARP a peer that knew the key could write here. */
  readonly sinks: StagingPool;

  constructor(pd: ProtectionDomain) {
    this.pd = pd;
    this.page = pd.allocateSync(pageSize, { access: ['read-sink', 'remote-read', 'remote-write'] });
    this.sources = new StagingPool(pd, []);
    this.sinks = new StagingPool(pd, ['read-sink']);
  }

  static open(device: Device): Domain {
    const pd = new ProtectionDomain(device);
    try {
      return new Domain(pd);
    } catch (error) {
      void pd.close();
      throw error;
    }
  }
}
