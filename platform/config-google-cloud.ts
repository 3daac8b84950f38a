import { gcsStorage } from './config-provider-storage';
import { nonEmpty, url } from './config-values';

/** What all services of Google Cloud need. */
export const googleKeys = {
  url: url.optional(),
  /** Id of the project. */
  project: nonEmpty,
  /** A region, a multi-region such as `eu`, or `global`. */
  location: nonEmpty,
  storage: gcsStorage,
};

/** https://cloud.google.com/speech-to-text/v2/docs/locations */
export function speechUrl(location: string): string {
  return `https://${location === 'global' ? '' : `${location}-`}speech.googleapis.com`;
}

/** https://cloud.google.com/vertex-ai/docs/reference/rest#rest_endpoints; multi-regions have names of their own. */
export function vertexUrl(location: string): string {
  if (location === 'us' || location === 'eu') {
    return `https://aiplatform.${location}.rep.googleapis.com`;
  }
  return `https://${location === 'global' ? '' : `${location}-`}aiplatform.googleapis.com`;
}
