import { ANY_LANGUAGE } from './staged-recording';

/** A folder with the recordings of a job, which have one language. */
export interface RecordingFolder {
  readonly jobId: string;
  /** In the provider's words, or {@link ANY_LANGUAGE}. */
  readonly language: string;
}

/** The beginning of the names of a job's recordings. It names the language, which a create states once. */
export function recordingFolder(jobId: string, language: string | null): string {
  return `${jobId}/${language ?? ANY_LANGUAGE}/`;
}

/** Reads the folder of a name; null for a name of something else. */
export function inRecordingFolder(name: string): RecordingFolder | null {
  const [, jobId, language] = /^(job_[0-9a-f]{32})\/([^/]+)\//.exec(name) ?? [];
  return jobId === undefined || language === undefined ? null : { jobId, language };
}
