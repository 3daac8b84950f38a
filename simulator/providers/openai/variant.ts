import { errorAnswer, jsonAnswer, type ApiFault, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import type { StoredJob } from '../job-store';
import { batchObject } from './batch-object';
import { readCreate, type CreateRequest } from './create-request';
import { OPENAI_PURPOSES, type FileHost } from './files';
import { pageOf } from './page';

/** What a batch request is, of any host. */
export interface BatchRequest extends Partial<CreateRequest> {
  readonly input_file_id: string;
  readonly endpoint: string;
  readonly lifetimeMs: number | null;
  /** Of the whole batch, for hosts that ask for it. */
  readonly model?: string;
}

/** A batch as the host shows it. */
export type BatchView = Readonly<Record<string, unknown>> & { readonly id: string };

/** What a host of OpenAI's Files and Batches API does in its own way. */
export interface OpenAiVariant extends FileHost {
  readonly prefix: string;
  /** Before the paths of all calls. */
  readonly root: string;
  /** Below the root. */
  readonly uploadPath: string;
  /** Of files; the first one is that of inputs. */
  readonly purposes: readonly [string, ...string[]];
  /** Below the root. */
  readonly batchesPath: string;
  /** Whether the lines of inputs name method and URL. */
  readonly linesNameUrl: boolean;
  /** Whether results name the lines that did not run. */
  readonly namesUnrun: boolean;
  /** @throws invalid_request */
  readCreate(body: Buffer): BatchRequest;
  shown(job: StoredJob, call: ApiCall): BatchView;
  created(batch: BatchView): ProviderAnswer;
  /** @param batches newest first */
  list(batches: readonly BatchView[], call: ApiCall): unknown;
  errorAnswer(error: ApiFault): ProviderAnswer;
}

/** OpenAI itself. */
export const OPENAI_VARIANT: OpenAiVariant = {
  prefix: 'openai',
  root: '/v1',
  uploadPath: '/files',
  purposes: OPENAI_PURPOSES,
  fileMembers: {},
  batchesPath: '/batches',
  linesNameUrl: true,
  namesUnrun: true,
  errorAnswer,
  readCreate,
  shown: (job, { state, nowMs }) => batchObject(job, state.settings, nowMs),
  created: (batch) => jsonAnswer(batch),
  list: (batches, { query, state }) => {
    const limit = { max: 100, preset: 20, cap: state.settings.max_page };
    return pageOf(batches, query, limit, (batch) => batch);
  },
};
