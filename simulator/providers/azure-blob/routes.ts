import { NightshiftError } from '../../../core/errors';
import type { ApiFault, ProviderAnswer } from '../answer';
import { routeIn, type ApiCall, type FakeApi, type RouteEntry } from '../fake-api';
import type { StoredFile } from '../file-store';
import { escapedXml, xmlAnswer } from '../xml-answer';

const ROUTES: readonly RouteEntry[] = [
  [/^PUT \/([^/]+\/.+)$/, 'files.create', putBlob],
  [/^GET \/([^/]+\/.+)$/, 'files.content', getBlob],
  [/^DELETE \/([^/]+\/.+)$/, 'files.delete', deleteBlob],
  [/^GET \/([^/]+)$/, 'files.list', listBlobs],
];

/**
 * The calls for single blobs of Azure Blob Storage, with the container in the path:
 * https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api. Every container exists. The
 * signature of the address is its key.
 */
export const AZURE_BLOB_API: FakeApi = {
  prefix: 'azure-blob',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf: (_, query) => query.get('sig') ?? '',
  errorAnswer,
};

const MAX_RESULTS = 5_000;

/** Azure Storage's own answer to each status; a signature that is unknown is a 403. */
const ERRORS: Readonly<Record<number, readonly [status: number, code: string]>> = {
  400: [400, 'InvalidHeaderValue'],
  401: [403, 'AuthenticationFailed'],
  404: [404, 'BlobNotFound'],
  429: [503, 'ServerBusy'],
  500: [500, 'InternalError'],
};

function errorAnswer({ httpStatus, message }: ApiFault): ProviderAnswer {
  const [status, code] = ERRORS[httpStatus] ?? [httpStatus, 'InternalError'];
  return xmlAnswer(
    `<Error><Code>${code}</Code><Message>${escapedXml(message)}</Message></Error>`,
    status,
  );
}

/** Put Blob. The type of a blob is required. */
function putBlob({ id, headers, body, nowMs, state }: ApiCall): ProviderAnswer {
  if (headers['x-ms-blob-type'] !== 'BlockBlob') {
    throw new NightshiftError('invalid_request', 'A header that is mandatory is missing.');
  }
  state.files.put(id, body, nowMs);
  return { status: 201, contentType: 'application/xml', bytes: Buffer.alloc(0) };
}

function getBlob(call: ApiCall): ProviderAnswer {
  const { bytes } = blobOf(call);
  return { status: 200, contentType: 'application/octet-stream', bytes };
}

function deleteBlob(call: ApiCall): ProviderAnswer {
  call.state.files.delete(blobOf(call).id);
  return { status: 202, contentType: 'application/xml', bytes: Buffer.alloc(0) };
}

/** List Blobs, whose pages continue after the last name of the one before. */
function listBlobs({ id: container, query, nowMs, state }: ApiCall): ProviderAnswer {
  const prefix = query.get('prefix') ?? '';
  const after = query.get('marker') ?? '';
  const size = Math.min(state.settings.max_page * 10, MAX_RESULTS);
  const names = state.files
    .objects(`${container}/${prefix}`, nowMs)
    .map(({ name }) => name.slice(container.length + 1))
    .filter((name) => name > after);
  const page = names.slice(0, size);
  const isLast = page.length === names.length;
  const blobs = page.map((name) => `<Blob><Name>${escapedXml(name)}</Name><Properties /></Blob>`);
  const next = isLast
    ? '<NextMarker />'
    : `<NextMarker>${escapedXml(page.at(-1) ?? '')}</NextMarker>`;
  return xmlAnswer(
    [
      `<EnumerationResults ContainerName="${escapedXml(container)}">`,
      `<Prefix>${escapedXml(prefix)}</Prefix><Blobs>${blobs.join('')}</Blobs>${next}`,
      '</EnumerationResults>',
    ].join(''),
  );
}

function blobOf({ id, nowMs, state }: ApiCall): StoredFile {
  const blob = state.files.object(id, nowMs);
  if (blob !== undefined) return blob;
  throw new NightshiftError('not_found', 'The specified blob does not exist.');
}
