import { NightshiftError } from '../../../core/errors';
import type { ApiFault, ProviderAnswer } from '../answer';
import { accessKeyOf } from '../aws/signature';
import { routeIn, type ApiCall, type FakeApi, type RouteEntry } from '../fake-api';
import type { StoredFile } from '../file-store';
import { escapedXml, xmlAnswer } from '../xml-answer';

const OBJECT = '([^/]+/.+)';
const ROUTES: readonly RouteEntry[] = [
  [new RegExp(`^PUT /${OBJECT}$`), 'files.create', putObject],
  [new RegExp(`^GET /${OBJECT}$`), 'files.content', getObject],
  [new RegExp(`^DELETE /${OBJECT}$`), 'files.delete', deleteObject],
  [/^GET \/([^/]+)\/?$/, 'files.list', listObjects],
];

/**
 * The calls for single objects of S3's REST API, with the bucket in the path:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html. Every
 * bucket exists.
 */
export const S3_API: FakeApi = {
  prefix: 's3',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf: accessKeyOf,
  errorAnswer,
};

const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';
const MAX_KEYS = 1_000;

/** S3's own answer to each status; a key that is unknown is a 403. */
const ERRORS: Readonly<Record<number, readonly [status: number, code: string]>> = {
  400: [400, 'InvalidRequest'],
  401: [403, 'InvalidAccessKeyId'],
  404: [404, 'NoSuchKey'],
  429: [503, 'SlowDown'],
  500: [500, 'InternalError'],
  503: [503, 'ServiceUnavailable'],
};

function errorAnswer({ httpStatus, message }: ApiFault): ProviderAnswer {
  const [status, code] = ERRORS[httpStatus] ?? [httpStatus, 'InternalError'];
  return xmlAnswer(
    `<Error><Code>${code}</Code><Message>${escapedXml(message)}</Message></Error>`,
    status,
  );
}

function putObject({ id, body, nowMs, state }: ApiCall): ProviderAnswer {
  state.files.put(id, body, nowMs);
  const headers = { etag: `"${body.length.toString(16)}"` };
  return { status: 200, contentType: 'application/xml', bytes: Buffer.alloc(0), headers };
}

function getObject(call: ApiCall): ProviderAnswer {
  const { bytes } = objectOf(call);
  return { status: 200, contentType: 'binary/octet-stream', bytes };
}

function deleteObject({ id, nowMs, state }: ApiCall): ProviderAnswer {
  const object = state.files.object(id, nowMs);
  if (object !== undefined) state.files.delete(object.id);
  return { status: 204, contentType: 'application/xml', bytes: Buffer.alloc(0) };
}

/** `ListObjectsV2`, whose pages continue after the last key of the one before. */
function listObjects({ id: bucket, query, nowMs, state }: ApiCall): ProviderAnswer {
  const prefix = query.get('prefix') ?? '';
  const after = query.get('continuation-token') ?? '';
  const size = Math.min(state.settings.max_page * 10, MAX_KEYS);
  const keys = state.files
    .objects(`${bucket}/${prefix}`, nowMs)
    .map(({ name, bytes }) => ({ key: name.slice(bucket.length + 1), size: bytes.length }))
    .filter(({ key }) => key > after);
  const page = keys.slice(0, size);
  const isTruncated = keys.length > page.length;
  const contents = page.map(
    (object) =>
      `<Contents><Key>${escapedXml(object.key)}</Key><Size>${object.size}</Size></Contents>`,
  );
  const next = `<NextContinuationToken>${escapedXml(page.at(-1)?.key ?? '')}</NextContinuationToken>`;
  return xmlAnswer(
    [
      `<ListBucketResult xmlns="${NAMESPACE}"><Name>${escapedXml(bucket)}</Name>`,
      `<KeyCount>${page.length}</KeyCount><IsTruncated>${isTruncated}</IsTruncated>`,
      ...(isTruncated ? [next] : []),
      ...contents,
      '</ListBucketResult>',
    ].join(''),
  );
}

function objectOf({ id, nowMs, state }: ApiCall): StoredFile {
  const object = state.files.object(id, nowMs);
  if (object !== undefined) return object;
  throw new NightshiftError('not_found', 'The specified key does not exist.');
}
