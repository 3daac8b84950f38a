import { NightshiftError } from '../../../core/errors';
import { invalid } from '../../request';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { StoredFile } from '../file-store';
import type { ProviderState } from '../job-store';
import type { ApiCall } from '../fake-api';
import { pageOf } from './page';

/** OpenAI's bounds of the lifetime that an upload may ask for, s. */
const MIN_LIFETIME_SEC = 3_600;
const MAX_LIFETIME_SEC = 30 * 24 * 3_600;
/** Purposes of files; the first one is that of inputs of batches. */
export const OPENAI_PURPOSES = [
  'batch',
  'assistants',
  'fine-tune',
  'vision',
  'user_data',
  'evals',
] as const;

/** How a host shows files. */
export interface FileHost {
  /** Further members of each file. */
  readonly fileMembers: Readonly<Record<string, unknown>>;
}

/** The form of an upload. */
export interface UploadForm {
  readonly name: string;
  readonly purpose: string;
  readonly bytes: Buffer;
  readonly lifetimeMs: number | null;
}

/** Reads a multipart form, whose fields may be in any order. @throws invalid_request */
export async function readUpload(
  contentType: string,
  body: Buffer,
  purposes: readonly string[],
): Promise<UploadForm> {
  const headers = { 'content-type': contentType };
  const form = await new Response(body, { headers }).formData().catch((cause: unknown) => {
    const message = 'the body must be a form (multipart/form-data)';
    throw new NightshiftError('invalid_request', message, { cause });
  });
  const file = form.get('file');
  if (!(file instanceof Blob)) throw invalid('file', "'file' is a required property");
  const purpose = form.get('purpose');
  if (typeof purpose !== 'string') throw invalid('purpose', "'purpose' is a required property");
  if (!purposes.includes(purpose)) {
    throw invalid('purpose', `'${purpose}' is not one of ${purposes.join(', ')}`);
  }
  const lifetimeMs = lifetimeOf(
    form.get('expires_after[anchor]'),
    form.get('expires_after[seconds]'),
  );
  const name = 'name' in file ? String(file.name) : 'file';
  return { name, purpose, bytes: Buffer.from(await file.arrayBuffer()), lifetimeMs };
}

/** The lifetime that `expires_after` asks for, ms. @throws invalid_request */
export function lifetimeOf(anchor: unknown, seconds: unknown): number | null {
  if (anchor === null && seconds === null) return null;
  if (anchor !== 'created_at') {
    throw invalid('expires_after.anchor', "expires_after.anchor must be 'created_at'");
  }
  const value = Number(seconds);
  if (Number.isInteger(value) && value >= MIN_LIFETIME_SEC && value <= MAX_LIFETIME_SEC) {
    return value * 1_000;
  }
  const bounds = `from ${MIN_LIFETIME_SEC} to ${MAX_LIFETIME_SEC}`;
  throw invalid('expires_after.seconds', `expires_after.seconds must be a whole number ${bounds}`);
}

/** `POST /files`. */
export function createFile(
  { name, purpose, bytes, lifetimeMs }: UploadForm,
  { files }: ProviderState,
  nowMs: number,
  host: FileHost,
): ProviderAnswer {
  const file = files.add({ name, purpose, bytes, createdMs: nowMs }, lifetimeMs);
  return jsonAnswer(fileObject(file, host));
}

/** `GET /files`. */
export function listFiles({ query, nowMs, state }: ApiCall, host: FileHost): ProviderAnswer {
  const purpose = query.get('purpose');
  const isAscending = query.get('order') === 'asc';
  const all = state.files.all(nowMs).filter((file) => purpose === null || file.purpose === purpose);
  const ordered = isAscending ? all : [...all].reverse();
  const limit = { max: 10_000, preset: 10_000 };
  return jsonAnswer(pageOf(ordered, query, limit, (file) => fileObject(file, host)));
}

/** `GET /files/{id}`. */
export function retrieveFile(call: ApiCall, host: FileHost): ProviderAnswer {
  return jsonAnswer(fileObject(fileOf(call), host));
}

/** `GET /files/{id}/content`. */
export function fileContent(call: ApiCall): ProviderAnswer {
  const { bytes } = fileOf(call);
  return { status: 200, contentType: 'application/octet-stream', bytes };
}

/** `DELETE /files/{id}`. */
export function deleteFile(call: ApiCall): ProviderAnswer {
  const { id } = fileOf(call);
  call.state.files.delete(id);
  return jsonAnswer({ id, object: 'file', deleted: true });
}

function fileOf({ id, nowMs, state }: ApiCall): StoredFile {
  const file = state.files.get(id, nowMs);
  if (file !== undefined) return file;
  throw new NightshiftError('not_found', `No such File object: ${id}`, { param: 'id' });
}

function fileObject(file: StoredFile, { fileMembers }: FileHost): Record<string, unknown> {
  const { id, name, purpose, bytes, createdMs, expiresMs } = file;
  return {
    id,
    object: 'file',
    bytes: bytes.length,
    created_at: Math.floor(createdMs / 1_000),
    expires_at: expiresMs === null ? null : Math.floor(expiresMs / 1_000),
    filename: name,
    purpose,
    status: 'processed',
    status_details: null,
    ...fileMembers,
  };
}
