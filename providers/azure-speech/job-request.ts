import { ANY_LANGUAGE } from '../audio/staged-recording';
import { inRecordingFolder } from '../audio/recording-folder';
import { jobName } from '../job-name';
import type { JobToCreate } from '../provider';

/**
 * How long results stay at the service, hours. It is longer than an outage that an installation may survive; a
 * job is deleted earlier, when its batch has ended.
 */
const TIME_TO_LIVE_HOURS = 168;

/**
 * A request for a job: https://learn.microsoft.com/rest/api/speechtotext/transcriptions/submit.
 * @param locales of recordings whose lines state no language; of several, the service identifies one
 */
export function submitRequest(
  job: JobToCreate,
  recordings: { readonly folder: string; readonly urls: readonly string[] },
  locales: readonly string[],
): Readonly<Record<string, unknown>> {
  const stated = inRecordingFolder(recordings.folder)?.language ?? ANY_LANGUAGE;
  const isStated = stated !== ANY_LANGUAGE;
  return {
    displayName: jobName(job),
    locale: isStated ? stated : locales[0],
    contentUrls: recordings.urls,
    properties: {
      timeToLiveHours: TIME_TO_LIVE_HOURS,
      wordLevelTimestampsEnabled: true,
      displayFormWordLevelTimestampsEnabled: true,
      // The service would mask words that it takes for profane.
      profanityFilterMode: 'None',
      ...(isStated || locales.length < 2
        ? {}
        : { languageIdentification: { candidateLocales: locales } }),
    },
  };
}
