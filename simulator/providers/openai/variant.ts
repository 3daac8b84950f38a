import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import type { StoredJob } from '../job-store';
import { batchObject } from './batch-object';
import { readCreate, type CreateRequest } from './create-request';
import { OPENAI_PURPOSES } from './files';
import { pageOf } from './page';

/** What a batch request is, of any host. */
export type BatchRequest = Pick<CreateRequest, 'input_file_id' | 'endpoint' | 'lifetimeMs'> &
  Partial<CreateRequest>;

/** A batch as the host shows it. */
export type BatchView = Readonly<Record<string, unknown>> & { readonly id: string };

/** What a host of OpenAI's Files and Batches API does in its own way. */
export interface OpenAiVariant {
  readonly prefix: string;
  /** Before the paths of all calls. */
  readonly root: string;
  /** Below the root. */
  readonly uploadPath: string;
  /** Of files; the first one is that of inputs. */
  readonly purposes: readonly [string, ...string[]];
  /** Whether the lines of inputs name method and URL. */
  readonly linesNameUrl: boolean;
  /** @throws invalid_request */
  readCreate(body: Buffer): BatchRequest;
  shown(job: StoredJob, call: ApiCall): BatchView;
  created(batch: BatchView): ProviderAnswer;
  /** @param batches newest first */
  list(batches: readonly BatchView[], call: ApiCall): unknown;
}

/** OpenAI itself. */
export const OPENAI_VARIANT: OpenAiVariant = {
  prefix: 'openai',
  root: '/v1',
  uploadPath: '/files',
  purposes: OPENAI_PURPOSES,
  linesNameUrl: true,
  readCreate,
  shown: (job, { state, nowMs }) => batchObject(job, state.settings, nowMs),
  created: (batch) => jsonAnswer(batch),
  list: (batches, { query, state }) => {
    const limit = { max: 100, preset: 20, cap: state.settings.max_page };
    return pageOf(batches, query, limit, (batch) => batch);
  },
};
