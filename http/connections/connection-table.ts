import type { Socket } from 'node:net';
import { clientAddress } from './client-address';

/** How many connections may be open at once. */
export interface ConnectionLimits {
  readonly total: number;
  readonly perAddress: number;
}

/** The limit that keeps a new connection out. */
export type ReachedLimit = 'total' | 'perAddress';

interface Connection {
  readonly address: string;
  /** Requests without a complete answer. */
  running: number;
  /** `performance.now()` of the last answer, or of the connection's start. */
  idleSinceMs: number;
  /** Bytes that had been read at that time. */
  readBytes: number;
}

/** A connection this young is about to send its request, so it does not count as idle. */
const FRESH_MS = 1_000;

/**
 * The open connections, and which of them are idle. `evict` must close an idle connection to make room for
 * a new one. `hasPartialRequest` is true if some bytes of a request had arrived on it.
 */
export class ConnectionTable {
  readonly #limits: ConnectionLimits;
  readonly #evict: (socket: Socket, hasPartialRequest: boolean) => void;
  readonly #open = new Map<Socket, Connection>();
  /** Longest idle first. */
  readonly #idle = new Set<Socket>();
  readonly #perAddress = new Map<string, number>();

  constructor(
    limits: ConnectionLimits,
    evict: (socket: Socket, hasPartialRequest: boolean) => void,
  ) {
    this.#limits = limits;
    this.#evict = evict;
  }

  /** Adds the connection. Returns the reached limit instead if no idle connection could be closed. */
  admit(socket: Socket): ReachedLimit | null {
    const address = clientAddress(socket);
    if (this.#countOf(address) >= this.#limits.perAddress && !this.#makeRoom(address)) {
      return 'perAddress';
    }
    if (this.#open.size >= this.#limits.total && !this.#makeRoom(null)) return 'total';
    const idleSinceMs = performance.now();
    this.#open.set(socket, { address, running: 0, idleSinceMs, readBytes: 0 });
    this.#idle.add(socket);
    this.#perAddress.set(address, this.#countOf(address) + 1);
    socket.once('close', () => this.#forget(socket));
    return null;
  }

  /** A request has begun on the connection. */
  begin(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    connection.running++;
    this.#idle.delete(socket);
  }

  /** An answer has ended on the connection. */
  end(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection === undefined || --connection.running > 0) return;
    connection.idleSinceMs = performance.now();
    connection.readBytes = socket.bytesRead;
    this.#idle.add(socket);
  }

  #countOf(address: string): number {
    return this.#perAddress.get(address) ?? 0;
  }

  #forget(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    this.#open.delete(socket);
    this.#idle.delete(socket);
    const others = this.#countOf(connection.address) - 1;
    if (others > 0) this.#perAddress.set(connection.address, others);
    else this.#perAddress.delete(connection.address);
  }

  /** Evicts the longest idle connection, of one address if one is given. */
  #makeRoom(address: string | null): boolean {
    const nowMs = performance.now();
    for (const socket of this.#idle) {
      const connection = this.#open.get(socket);
      if (connection === undefined) continue;
      if (nowMs - connection.idleSinceMs < FRESH_MS) return false;
      if (address !== null && connection.address !== address) continue;
      this.#forget(socket);
      this.#evict(socket, socket.bytesRead > connection.readBytes);
      return true;
    }
    return false;
  }
}
