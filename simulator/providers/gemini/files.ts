import { randomUUID } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import { isJsonObject } from '../../../core/openai/json-object';
import { invalid } from '../../request';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import type { StoredFile } from '../file-store';
import { readJson } from '../json-payload';

const NO_JSON = 'Invalid JSON payload received.';

/** Files are deleted after 48 hours. */
const LIFETIME_MS = 48 * 3_600_000;
/** How the API's names of files are told from those of other providers in the one store. */
const FOLDER = 'gemini/';
/** Purpose of an upload that has begun. */
const BEGUN = 'upload';
const RESULTS = 'results';

/** The first request of a resumable upload. Its answer names the address of the second one. */
export function startUpload({ headers, body, baseUrl, state, nowMs }: ApiCall): ProviderAnswer {
  if (headers['x-goog-upload-protocol'] !== 'resumable') {
    throw invalid('', 'only resumable uploads are simulated');
  }
  if (headers['x-goog-upload-command'] !== 'start') {
    throw invalid('', 'Upload command must be start.');
  }
  const json = body.length === 0 ? {} : readJson(body, NO_JSON);
  const file: unknown = isJsonObject(json) ? json['file'] : {};
  const bytes = Buffer.from(JSON.stringify(isJsonObject(file) ? file : {}));
  const begun = { name: 'upload', purpose: BEGUN, bytes, createdMs: nowMs };
  const { id } = state.files.add(begun, LIFETIME_MS);
  const address = `${baseUrl}/upload/v1beta/files/${id}?upload_protocol=resumable`;
  const headersOut = { 'x-goog-upload-url': address, 'x-goog-upload-status': 'active' };
  return { ...jsonAnswer({}), headers: headersOut };
}

/** The request with the bytes. An upload in several pieces is not simulated. */
export function finishUpload({ id, headers, body, state, nowMs }: ApiCall): ProviderAnswer {
  const begun = state.files.get(id, nowMs);
  if (begun?.purpose !== BEGUN) throw new NightshiftError('not_found', 'Upload not found.');
  const isWhole =
    headers['x-goog-upload-command'] === 'upload, finalize' &&
    headers['x-goog-upload-offset'] === '0';
  if (!isWhole) throw invalid('', 'only uploads with one piece are simulated');
  state.files.delete(id);
  const given = JSON.parse(begun.bytes.toString('utf8')) as { readonly displayName?: string };
  const name = FOLDER + randomUUID().slice(0, 12).replaceAll('-', '');
  const file = state.files.put(name, body, nowMs);
  const answer = jsonAnswer({ file: { ...fileObject(file), ...given } });
  return { ...answer, headers: { 'x-goog-upload-status': 'final' } };
}

/** `files.get`. */
export function retrieveFile(call: ApiCall): ProviderAnswer {
  return jsonAnswer(fileObject(fileOf(call)));
}

/** `files.delete`. The files of results cannot be deleted. */
export function deleteFile(call: ApiCall): ProviderAnswer {
  const file = fileOf(call);
  if (file.name.startsWith(`${FOLDER}batch-`)) throw forbidden(call.id);
  call.state.files.delete(file.id);
  return jsonAnswer({});
}

/** The bytes of a file. */
export function fileContent(call: ApiCall): ProviderAnswer {
  const { bytes } = fileOf(call);
  return { status: 200, contentType: 'application/octet-stream', bytes };
}

/** The file with a name such as `files/abc`; undefined if there is none. */
export function findFile(name: string, { state, nowMs }: Pick<ApiCall, 'state' | 'nowMs'>) {
  return state.files.object(name.replace(/^files\//, FOLDER), nowMs);
}

/** Writes the results of a batch. @returns the name of the file, such as `files/batch-abc` */
export function writeResults(batch: string, bytes: Buffer, { state }: ApiCall, nowMs: number) {
  const name = `batch-${batch}`;
  state.files.put(FOLDER + name, bytes, nowMs);
  return `files/${name}`;
}

/** Deletes a file of results. */
export function deleteResults(name: string, call: ApiCall): void {
  const file = findFile(name, call);
  if (file !== undefined) call.state.files.delete(file.id);
}

function fileOf(call: ApiCall): StoredFile {
  const file = findFile(`files/${call.id}`, call);
  if (file === undefined) throw forbidden(call.id);
  return file;
}

/** The API does not tell files that do not exist from those of others. */
function forbidden(id: string): NightshiftError {
  const message = `You do not have permission to access the File ${id} or it may not exist.`;
  return new NightshiftError('forbidden', message);
}

function fileObject({ name, bytes, createdMs }: StoredFile): Readonly<Record<string, unknown>> {
  const id = name.slice(FOLDER.length);
  const time = new Date(createdMs).toISOString();
  return {
    name: `files/${id}`,
    mimeType: 'application/jsonl',
    sizeBytes: String(bytes.length),
    createTime: time,
    updateTime: time,
    expirationTime: new Date(createdMs + LIFETIME_MS).toISOString(),
    state: 'ACTIVE',
    source: id.startsWith('batch-') ? RESULTS.toUpperCase() : 'UPLOADED',
  };
}
