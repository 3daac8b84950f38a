import { randomUUID } from 'node:crypto';
import { WebSocket } from 'ws';
import type { ServerEvent } from '../../../core/audio/realtime/server-event';

/** What becomes of what a client sends. */
export interface SocketOwner {
  onText(text: string): void;
  onAudio(bytes: Buffer): void;
  /** The client took what was sent, so there is room again. */
  onDrain(): void;
  /** The connection is closed. Called once, and nothing afterwards. */
  onClosed(): void;
}

const PING_MS = 10_000;
/** So many pings without an answer end a connection. */
const MAX_UNANSWERED = 2;
/** What a client may leave unread before nothing more is read from it or from its worker, bytes. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** How long a client may take to answer a close. */
const CLOSE_MS = 2_000;

/**
 * The client's end of a session. It does not read from a client that does not read, or while its owner has no room, and
 * ends the connection of one that does not answer pings (docs/design/realtime.md#slow-and-lost-clients).
 */
export class ClientSocket {
  readonly #socket: WebSocket;
  readonly #owner: SocketOwner;
  readonly #pings: NodeJS.Timeout;
  #unanswered = 0;
  #ownerHasRoom = true;
  #isClosing = false;

  constructor(socket: WebSocket, owner: SocketOwner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.on('message', (data, isBinary) => this.#onMessage(data as Buffer, isBinary));
    socket.on('pong', () => (this.#unanswered = 0));
    // ws answers pings by itself. A client that does not read must not make it keep many answers.
    socket.on('ping', () => this.#flow());
    socket.on('error', () => socket.terminate());
    socket.once('close', () => {
      clearInterval(this.#pings);
      owner.onClosed();
    });
    this.#pings = setInterval(() => this.#ping(), PING_MS).unref();
  }

  /** Whether the client leaves much unread. */
  get isClogged(): boolean {
    return this.#isOpen && this.#socket.bufferedAmount > MAX_UNREAD_BYTES;
  }

  /** Whether anything is read from the client. */
  get isReading(): boolean {
    return this.#isOpen && !this.#socket.isPaused;
  }

  send(events: readonly ServerEvent[]): void {
    if (!this.#isOpen) return;
    for (const { type, ...rest } of events) {
      const eventId = `event_${randomUUID().replaceAll('-', '')}`;
      const text = JSON.stringify({ type, event_id: eventId, ...rest });
      this.#socket.send(text, () => this.#onSent());
    }
    this.#flow();
  }

  /** Whether the owner has room for more messages. Without, the client is not read: TCP slows it down. */
  setRoom(hasRoom: boolean): void {
    this.#ownerHasRoom = hasRoom;
    this.#flow();
  }

  /** Closes the connection. Nothing is read or sent any more. */
  close(code: number, reason: string): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    // To read the answer to the close.
    this.#socket.resume();
    this.#socket.close(code, reason);
    const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS).unref();
    this.#socket.once('close', () => clearTimeout(timer));
  }

  get #isOpen(): boolean {
    return !this.#isClosing && this.#socket.readyState === WebSocket.OPEN;
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    if (this.#isClosing) return;
    this.#unanswered = 0;
    if (isBinary) this.#owner.onAudio(data);
    else this.#owner.onText(data.toString());
  }

  #onSent(): void {
    if (!this.#isOpen || this.isClogged) return;
    this.#flow();
    this.#owner.onDrain();
  }

  #flow(): void {
    if (!this.#isOpen) return;
    const mayRead = this.#ownerHasRoom && !this.isClogged;
    if (mayRead && this.#socket.isPaused) this.#socket.resume();
    else if (!mayRead && !this.#socket.isPaused) this.#socket.pause();
  }

  #ping(): void {
    // An answer is not read while the owner has no room.
    if (this.isReading || this.isClogged) this.#unanswered++;
    if (this.#unanswered > MAX_UNANSWERED) this.#socket.terminate();
    else if (this.#isOpen) this.#socket.ping();
  }
}
