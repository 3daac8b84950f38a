import { Context } from '@temporalio/activity';
import type { JobInput } from './contract';

/**
 * What an attempt passes on to the next one, in its heartbeat: a note of each job of the part. The note of a part
 * with one job is the heartbeat's details themselves.
 */
export class JobNotes<Note extends object> {
  readonly #single: Note | null;
  readonly #jobs: Record<string, Note>;

  /** Takes over what the last attempt has noted. */
  constructor({ job }: JobInput) {
    const last = { ...(Context.current().info.heartbeatDetails as object | undefined) };
    this.#single = job.jobs === undefined ? (last as Note) : null;
    this.#jobs = { ...(last as { jobs?: Record<string, Note> }).jobs };
  }

  /** The note of one job. Changes to it are passed on. */
  of({ job }: JobInput): Note {
    return this.#single ?? (this.#jobs[job.jobId] ??= {} as Note);
  }

  /** The details of the heartbeat. */
  get details(): object {
    return this.#single ?? { jobs: this.#jobs };
  }
}
