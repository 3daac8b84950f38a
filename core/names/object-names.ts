import type { Range } from '../range';

/**
 * The keys of all objects (docs/design/journal.md#object-names). No key is a folder of another key.
 * Numbers are plan positions, zero-padded to 10 digits, so that the order of keys is the order of the
 * plan. `r` is 16 random hex digits from the caller.
 */
const DIGITS = 10;
/** Of the number of a segment within its writer. */
const NUMBER_DIGITS = 6;
const SEGMENT_KEY =
  /^batches\/([^/]+)\/journal\/([^/]+)\/(\d{10})-(\d{10})\.([0-9a-f]{16})(?:\.\d{6,})?\.seg$/;
const SEGMENT_NUMBER = /(?:\.\d{6,})?\.seg$/;
const SEAL_KEY =
  /^batches\/([^/]+)\/seals\/([^/]+)\/(?:(\d{10})-(\d{10})|rest)\.([0-9a-f]{16})\.seal$/;

/** The fields of a segment's name; `range` is the plan positions that it may hold. */
export interface SegmentName {
  readonly batchId: string;
  readonly safeModel: string;
  readonly range: Range;
  readonly r: string;
}

/** The fields of a seal's name; `range` is null for the `rest` object. */
export interface SealName {
  readonly batchId: string;
  readonly safeModel: string;
  readonly range: Range | null;
  readonly r: string;
}

const BATCHES_PREFIX = 'batches/';

/** The prefix of everything that belongs to a batch, except its result files. */
export function batchPrefix(batchId: string): string {
  return `${BATCHES_PREFIX}${batchId}/`;
}

/** Whether an object belongs to a batch: it is immutable, and kept at least until its batch has ended. */
export function isOfBatch(key: string): boolean {
  return key.startsWith(BATCHES_PREFIX);
}

/** The model map. Ingestion writes it last and only if absent, so it decides which plan counts. */
export function modelMapKey(batchId: string): string {
  return `${batchPrefix(batchId)}model_map.json`;
}

/** The errors of an invalid input file, `{"data":[InputError…]}`. */
export function inputErrorsKey(batchId: string): string {
  return `${batchPrefix(batchId)}errors.json`;
}

/** The plan of one model. */
export function planKey(batchId: string, nonce: string, safeModel: string): string {
  return `${batchPrefix(batchId)}plans/${nonce}/${safeModel}.plan`;
}

/** The runs of one model's plan; absent if they are those of equal prefix hashes. */
export function runsKey(batchId: string, nonce: string, safeModel: string): string {
  return `${batchPrefix(batchId)}plans/${nonce}/${safeModel}.runs`;
}

/** The files that requests of a batch name; absent if its endpoint has none. */
export function inputFilesKey(batchId: string, nonce: string): string {
  return `${batchPrefix(batchId)}plans/${nonce}/files.json`;
}

/** The staged input of a job at a provider; `r` differs between attempts at staging it. */
export function stagedJobKey(batchId: string, jobId: string, r: string): string {
  return `${batchPrefix(batchId)}delegated/${jobId}.${r}.jsonl`;
}

/** All segments of one model; ends with a slash. */
export function journalPrefix(batchId: string, safeModel: string): string {
  return `${batchPrefix(batchId)}journal/${safeModel}/`;
}

/** One journal segment. Its name holds the first and the last position, both included. */
export function segmentKey(batchId: string, safeModel: string, range: Range, r: string): string {
  const { from, to } = range;
  return `${journalPrefix(batchId, safeModel)}${padded(from)}-${padded(to - 1)}.${r}.seg`;
}

/** One of the numbered segments of a writer; `number` counts from 1, and key order is the order of writing. */
export function numberedSegmentKey(segment: string, number: number): string {
  return segment.replace(/\.seg$/, `.${String(number).padStart(NUMBER_DIGITS, '0')}.seg`);
}

/** The key of a segment without its number: equal for all numbered segments of one writer. */
export function unnumberedSegmentKey(segment: string): string {
  return segment.replace(SEGMENT_NUMBER, '.seg');
}

/**
 * Every segment, or every seal of a range, in `folder` that overlaps `range` has a key between these two. No such object
 * spans more than `maxSpan` positions, so its first position is not much smaller than the range. One listing of a few
 * keys finds them, however large the batch is.
 */
export function overlapKeys(
  folder: string,
  { from, to }: Range,
  maxSpan: number,
): { readonly after: string; readonly before: string } {
  const first = Math.max(0, from - maxSpan + 1);
  return { after: folder + padded(first), before: folder + padded(to) };
}

/** The inverse of {@link segmentKey} and {@link numberedSegmentKey}; null for any other key. */
export function parseSegmentKey(key: string): SegmentName | null {
  const match = SEGMENT_KEY.exec(key);
  if (match === null) return null;
  const [, batchId = '', safeModel = '', first, last, r = ''] = match;
  return { batchId, safeModel, range: { from: Number(first), to: Number(last) + 1 }, r };
}

/** All seals of a batch; ends with a slash. */
export function sealsPrefix(batchId: string): string {
  return `${batchPrefix(batchId)}seals/`;
}

/** The seal of a range. Its name holds the position after the last one, unlike the name of a segment. */
export function sealKey(batchId: string, safeModel: string, range: Range, r: string): string {
  const { from, to } = range;
  return `${sealsPrefix(batchId)}${safeModel}/${padded(from)}-${padded(to)}.${r}.seal`;
}

/** The rest objects of one model. */
export function restPrefix(batchId: string, safeModel: string): string {
  return `${sealsPrefix(batchId)}${safeModel}/rest.`;
}

/** The object for answers that no seal of a range covers; its positions may have gaps. */
export function restKey(batchId: string, safeModel: string, r: string): string {
  return `${restPrefix(batchId, safeModel)}${r}.seal`;
}

/** The inverse of {@link sealKey} and {@link restKey}; null for any other key. */
export function parseSealKey(key: string): SealName | null {
  const match = SEAL_KEY.exec(key);
  if (match === null) return null;
  const [, batchId = '', safeModel = '', from, to, r = ''] = match;
  const range = from === undefined ? null : { from: Number(from), to: Number(to) };
  return { batchId, safeModel, range, r };
}

/** The manifest, from which the result files are made; written only if absent. */
export function manifestKey(batchId: string): string {
  return `${batchPrefix(batchId)}manifest.json`;
}

/** The records of all batches that have a plan. */
export const BATCH_RECORDS_PREFIX = 'batch-records/';

/** What the store knows of the row of a batch. Not below its prefix, so that a listing of all is short. */
export function batchRecordKey(batchId: string): string {
  return `${BATCH_RECORDS_PREFIX}${batchId}.json`;
}

/** The batch id of a {@link batchRecordKey}; null for any other key. */
export function parseBatchRecordKey(key: string): string | null {
  return /^batch-records\/(batch_[0-9a-f]{32})\.json$/.exec(key)?.[1] ?? null;
}

/** All uploaded and result files. */
export const FILES_PREFIX = 'files/';
/** All parts of uploads. */
export const UPLOADS_PREFIX = 'uploads/';

/** The bytes of an uploaded or a result file. */
export function fileKey(tenantHash: string, fileId: string): string {
  return `${FILES_PREFIX}${tenantHash}/${fileId}`;
}

/** The inverse of {@link fileKey}; null for any other key. */
export function parseFileKey(key: string): { readonly fileId: string } | null {
  const match = /^files\/[^/]+\/(file-[0-9A-Za-z]+)$/.exec(key);
  return match === null ? null : { fileId: match[1] ?? '' };
}

/** The indexes of uploaded files. */
export const INDEXES_PREFIX = 'indexes/';

/** The index of an uploaded file with this {@link fileKey}. */
export function fileIndexKey(fileKey: string): string {
  return INDEXES_PREFIX + fileKey.slice(FILES_PREFIX.length);
}

/** The inverse of {@link fileIndexKey}; null for any other key. */
export function parseFileIndexKey(key: string): { readonly fileId: string } | null {
  if (!key.startsWith(INDEXES_PREFIX)) return null;
  return parseFileKey(FILES_PREFIX + key.slice(INDEXES_PREFIX.length));
}

/** The bytes of one part of an upload, until the upload has ended. */
export function uploadPartKey(uploadId: string, partId: string): string {
  return `${uploadPrefix(uploadId)}${partId}`;
}

/** All parts of an upload; ends with a slash. */
export function uploadPrefix(uploadId: string): string {
  return `${UPLOADS_PREFIX}${uploadId}/`;
}

/** The inverse of {@link uploadPartKey}; null for any other key. */
export function parseUploadPartKey(key: string): { readonly uploadId: string } | null {
  const match = /^uploads\/([^/]+)\/[^/]+$/.exec(key);
  return match === null ? null : { uploadId: match[1] ?? '' };
}

function padded(position: number): string {
  return String(position).padStart(DIGITS, '0');
}
