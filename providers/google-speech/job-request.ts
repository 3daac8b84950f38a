import { inRecordingFolder } from '../audio/recording-folder';
import { ANY_LANGUAGE } from '../audio/staged-recording';
import type { JobToCreate } from '../provider';

/** What a job reads and writes. */
export interface RecognizePlaces {
  /** The beginning of the names of the recordings. It names their language. */
  readonly folder: string;
  /** Addresses of the recordings. */
  readonly uris: readonly string[];
  /** Beginning of the addresses of the transcripts. */
  readonly output: string;
}

/** Beginning of the names of a job's transcripts. It has the ids of the job and of the installation. */
export function outputPrefix({ jobId, storeId }: Pick<JobToCreate, 'jobId' | 'storeId'>): string {
  return `${jobId}/results-${storeId}/`;
}

/** The job of an installation that writes to this place in the folder; null for one of someone else. */
export function markedJobId(output: string | null, storeId: string): string | null {
  const [, jobId = ''] = /^(job_[0-9a-f]{32})\//.exec(output ?? '') ?? [];
  return output === outputPrefix({ jobId, storeId }) ? jobId : null;
}

/**
 * A request for a job: https://cloud.google.com/speech-to-text/v2/docs/reference/rest/v2/projects.locations.recognizers/batchRecognize.
 * @param locales of recordings whose lines state no language
 */
export function recognizeRequest(
  { model }: JobToCreate,
  { folder, uris, output }: RecognizePlaces,
  locales: readonly string[],
): Readonly<Record<string, unknown>> {
  const stated = inRecordingFolder(folder)?.language ?? ANY_LANGUAGE;
  return {
    config: {
      autoDecodingConfig: {},
      model,
      languageCodes: stated === ANY_LANGUAGE ? locales : [stated],
      features: { enableWordTimeOffsets: true, enableAutomaticPunctuation: true },
    },
    files: uris.map((uri) => ({ uri })),
    recognitionOutputConfig: { gcsOutputConfig: { uri: output } },
    // Cheaper, and within a day.
    processingStrategy: 'DYNAMIC_BATCHING',
  };
}
