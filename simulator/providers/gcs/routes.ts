import { NightshiftError } from '../../../core/errors';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import { routeIn, type ApiCall, type FakeApi, type RouteEntry } from '../fake-api';
import type { StoredFile } from '../file-store';
import { tokenKeyOf } from '../google/access-token';
import { googleError } from '../google/error-answer';
import { invalid } from '../../request';

const OBJECTS = '/storage/v1/b/([^/]+)/o';
const ROUTES: readonly RouteEntry[] = [
  [new RegExp(`^POST /upload${OBJECTS}$`), 'files.create', insertObject],
  [new RegExp(`^GET ${OBJECTS}$`), 'files.list', listObjects],
  [new RegExp(`^GET ${OBJECTS}/([^/]+)$`), 'files.content', getObject],
  [new RegExp(`^DELETE ${OBJECTS}/([^/]+)$`), 'files.delete', deleteObject],
];
/** Google's bound of a page. */
const MAX_RESULTS = 1_000;

/**
 * The calls for single objects of Cloud Storage's JSON API
 * (https://cloud.google.com/storage/docs/json_api/v1/objects). Every bucket exists.
 */
export const GCS_API: FakeApi = {
  prefix: 'gcs',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf: tokenKeyOf,
  errorAnswer: googleError,
};

function insertObject({ id: bucket, query, body, nowMs, state }: ApiCall): ProviderAnswer {
  const name = query.get('name') ?? '';
  if (query.get('uploadType') !== 'media') throw invalid('uploadType', 'only media is simulated');
  if (name === '') throw invalid('name', 'Required parameter: name');
  return jsonAnswer(objectResource(bucket, state.files.put(`${bucket}/${name}`, body, nowMs)));
}

/** Pages continue after the last name of the one before. */
function listObjects({ id: bucket, query, nowMs, state }: ApiCall): ProviderAnswer {
  const after = query.get('pageToken') ?? '';
  const size = Math.min(state.settings.max_page * 10, MAX_RESULTS);
  const found = state.files
    .objects(`${bucket}/${query.get('prefix') ?? ''}`, nowMs)
    .filter(({ name }) => name > after);
  const page = found.slice(0, size);
  const hasMore = found.length > page.length;
  return jsonAnswer({
    kind: 'storage#objects',
    ...(hasMore ? { nextPageToken: page.at(-1)?.name } : {}),
    ...(page.length === 0 ? {} : { items: page.map((file) => objectResource(bucket, file)) }),
  });
}

/** The metadata of an object, or its bytes with `alt=media`, whose errors are plain texts. */
function getObject(call: ApiCall): ProviderAnswer {
  const [bucket = '', name = ''] = call.params;
  const object = objectOf(call);
  const isMedia = call.query.get('alt') === 'media';
  if (isMedia && object === undefined) {
    const bytes = Buffer.from(`No such object: ${bucket}/${name}`);
    return { status: 404, contentType: 'text/html; charset=UTF-8', bytes };
  }
  if (object === undefined) throw missing(bucket, name);
  if (!isMedia) return jsonAnswer(objectResource(bucket, object));
  return { status: 200, contentType: 'application/octet-stream', bytes: object.bytes };
}

function deleteObject(call: ApiCall): ProviderAnswer {
  const object = objectOf(call);
  const [bucket = '', name = ''] = call.params;
  if (object === undefined) throw missing(bucket, name);
  call.state.files.delete(object.id);
  return { status: 204, contentType: 'application/json', bytes: Buffer.alloc(0) };
}

function objectOf({ params, nowMs, state }: ApiCall): StoredFile | undefined {
  const [bucket = '', name = ''] = params;
  return state.files.object(`${bucket}/${name}`, nowMs);
}

function missing(bucket: string, name: string): NightshiftError {
  return new NightshiftError('not_found', `No such object: ${bucket}/${name}`);
}

function objectResource(bucket: string, file: StoredFile): Readonly<Record<string, unknown>> {
  return {
    kind: 'storage#object',
    bucket,
    name: file.name.slice(bucket.length + 1),
    size: String(file.bytes.length),
    timeCreated: new Date(file.createdMs).toISOString(),
  };
}
