/** A piece of audio and where it begins in the session, bytes. */
interface Chunk {
  readonly start: number;
  readonly bytes: Uint8Array;
}

/** What is sent to an audio worker: audio, or the end of an item. */
export type LogFrame = { readonly audio: Uint8Array } | { readonly commit: true };

/** A chunk counts as at least so many bytes: tiny ones cost memory too. */
const LEAST_CHUNK = 64;

/**
 * The audio of a session on its way to a worker, and what must be sent again if that worker is lost: audio since the
 * last final text, and the ends of items that are not done (docs/design/realtime.md#lost-workers). What was not sent
 * yet is always kept; of what was sent, at most `maxKeptBytes`.
 */
export class AudioLog {
  readonly #maxKeptBytes: number;
  #chunks: Chunk[] = [];
  /** How many of the chunks were sent. */
  #sentChunks = 0;
  #keptBytes = 0;
  /** Where items end that are not done. */
  #commits: number[] = [];
  #sentCommits = 0;
  /** Where the next byte comes to lie. */
  #end = 0;
  /** Up to where everything was sent. */
  #cursor = 0;
  /** What lies behind belongs to the next stream; null if nothing does. */
  #barrier: number | null = null;

  constructor(maxKeptBytes: number) {
    this.#maxKeptBytes = maxKeptBytes;
  }

  /** Bytes that arrived so far, cleared ones included. */
  get end(): number {
    return this.#end;
  }

  /** Where the audio begins that would be sent first. */
  get start(): number {
    return this.#chunks[0]?.start ?? this.#end;
  }

  /** Whether {@link next} has something. */
  get hasNext(): boolean {
    return this.#commitIsNext() || this.#nextChunk() !== undefined;
  }

  append(bytes: Uint8Array): void {
    this.#chunks.push({ start: this.#end, bytes });
    this.#end += bytes.length;
  }

  /** An item ends with the audio so far. */
  commit(): void {
    this.#commits.push(this.#end);
  }

  /** The worker has ended an item by itself: it is ended there if the audio is sent again. */
  commitSent(at: number): void {
    if (this.#sentCommits < this.#commits.length) return;
    this.#commits.push(Math.min(Math.max(at, this.#commits.at(-1) ?? 0), this.#cursor));
    this.#sentCommits++;
  }

  /** The first item that had not been done is done. Returns where it ended, or null. */
  commitDone(): number | null {
    const at = this.#commits.shift();
    if (at === undefined) return null;
    this.#sentCommits = Math.max(0, this.#sentCommits - 1);
    this.forget(at);
    return at;
  }

  /** The text up to here is final: what was sent of it is not needed again. */
  forget(to: number): void {
    let done = 0;
    while (done < this.#sentChunks && endOf(this.#chunks[done]) <= to) done++;
    this.#drop(done);
    const [first] = this.#chunks;
    if (this.#sentChunks === 0 || first === undefined || first.start >= to) return;
    const rest = { start: to, bytes: first.bytes.subarray(to - first.start) };
    this.#keptBytes += sizeOf(rest) - sizeOf(first);
    this.#chunks[0] = rest;
  }

  /** Drops the audio after the last item. What comes is sent only after {@link rewind}. */
  clear(): void {
    const from = this.#commits.at(-1) ?? 0;
    const kept = this.#chunks.findIndex(({ start }) => start >= from);
    if (kept >= 0) {
      for (const chunk of this.#chunks
        .splice(kept)
        .slice(0, Math.max(0, this.#sentChunks - kept))) {
        this.#keptBytes -= sizeOf(chunk);
      }
      this.#sentChunks = Math.min(this.#sentChunks, kept);
    }
    this.#barrier ??= this.#end;
  }

  /** What is sent next; null if there is nothing yet. */
  next(): LogFrame | null {
    if (this.#commitIsNext()) {
      this.#sentCommits++;
      return { commit: true };
    }
    const chunk = this.#nextChunk();
    if (chunk === undefined) return null;
    this.#sentChunks++;
    this.#keptBytes += sizeOf(chunk);
    this.#cursor = endOf(chunk);
    let dropped = 0;
    let excess = this.#keptBytes - this.#maxKeptBytes;
    for (; excess > 0; dropped++) excess -= sizeOf(this.#chunks[dropped]);
    this.#drop(dropped);
    return { audio: chunk.bytes };
  }

  /** The next stream begins with what is kept. */
  rewind(): void {
    this.#sentChunks = 0;
    this.#keptBytes = 0;
    this.#sentCommits = 0;
    this.#barrier = null;
    this.#cursor = this.start;
  }

  #commitIsNext(): boolean {
    const at = this.#commits[this.#sentCommits];
    return at !== undefined && (at <= this.#cursor || this.#chunks[this.#sentChunks] === undefined);
  }

  #nextChunk(): Chunk | undefined {
    const chunk = this.#chunks[this.#sentChunks];
    const isBehind = chunk !== undefined && this.#barrier !== null && chunk.start >= this.#barrier;
    return isBehind ? undefined : chunk;
  }

  /** Drops the first chunks, all of which were sent. */
  #drop(count: number): void {
    if (count === 0) return;
    for (const chunk of this.#chunks.splice(0, count)) this.#keptBytes -= sizeOf(chunk);
    this.#sentChunks -= count;
  }
}

function endOf(chunk: Chunk | undefined): number {
  return chunk === undefined ? Infinity : chunk.start + chunk.bytes.length;
}

function sizeOf(chunk: Chunk | undefined): number {
  return Math.max(LEAST_CHUNK, chunk?.bytes.length ?? 0);
}
