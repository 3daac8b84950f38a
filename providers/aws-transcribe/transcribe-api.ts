import type * as TranscribeSdk from '@aws-sdk/client-transcribe';
import { callAws, createAtAws, type AwsCall } from '../aws/aws-call';
import { awsClientOptions, type AwsAccess } from '../aws/aws-client';
import type { AwsError } from '../aws/aws-errors';
import type { CallOptions, CreateResult, IdempotentResult, NewJob, SendOptions } from '../provider';
import type { AwsTranscribeKind, ProviderConnection } from '../provider-settings';
import type { RemoteFolder } from '../remote-folder';
import { readTranscribeJob, type TranscribeJob } from './job-state';
import { startRequest, transcribePlaces } from './job-request';

const PAGE_SIZE = 100;
const OPEN = ['QUEUED', 'IN_PROGRESS'] as const;

type Settings = ProviderConnection & AwsTranscribeKind;

/** The client of the SDK. It is loaded at the first call, which takes about 0.2 s. */
interface Opened {
  readonly sdk: typeof TranscribeSdk;
  readonly client: TranscribeSdk.TranscribeClient;
}

/** The calls of Amazon Transcribe, each classified. */
export class TranscribeApi {
  readonly #settings: Settings;
  readonly #access: AwsAccess;
  readonly #folder: RemoteFolder;
  #opened: Promise<Opened> | null = null;

  constructor(settings: Settings, access: AwsAccess, folder: RemoteFolder) {
    this.#settings = settings;
    this.#access = access;
    this.#folder = folder;
  }

  /** Creates a job. Its name is taken if an earlier create was accepted: `ambiguous`. */
  async start(job: NewJob, call: SendOptions): Promise<CreateResult> {
    const { sdk, client } = await this.#open();
    const { storage, dataAccessRoleArn: roleArn } = this.#settings;
    const places = transcribePlaces(job.remoteInput ?? '');
    if (places === null) throw new TypeError(`job ${job.jobId} has no recording`);
    const request = startRequest(job, places, { ...storage, roleArn });
    return createAtAws(
      {
        send: (exchange) => client.send(new sdk.StartTranscriptionJobCommand(request), exchange),
        value: ({ TranscriptionJob: started }) => {
          const externalId = started?.TranscriptionJobName;
          const createdAtMs = started?.CreationTime?.getTime() ?? null;
          return externalId === undefined ? null : { externalId, createdAtMs };
        },
        mask: this.#access.credentials.mask,
      },
      call,
    );
  }

  /** One look at a job; `gone` without one of the name. */
  async job(name: string, call: CallOptions): Promise<IdempotentResult<TranscribeJob>> {
    const { sdk, client } = await this.#open();
    const { mask } = this.#access.credentials;
    return this.#call(
      {
        send: (exchange) =>
          client.send(new sdk.GetTranscriptionJobCommand({ TranscriptionJobName: name }), exchange),
        value: ({ TranscriptionJob: job }) => readTranscribeJob(job, this.#transcriptOf(job), mask),
        mask,
      },
      call,
    );
  }

  /**
   * The names of the open jobs that contain a text, and were created since a time. It costs a call for each hundred
   * of them, and two at least.
   */
  async openJobs(
    { text, sinceMs }: { readonly text: string; readonly sinceMs: number },
    call: CallOptions,
  ): Promise<IdempotentResult<readonly string[]>> {
    const { sdk, client } = await this.#open();
    const names: string[] = [];
    for (const Status of OPEN) {
      for (let token: string | undefined; ;) {
        const page = { JobNameContains: text, Status, MaxResults: PAGE_SIZE, NextToken: token };
        const listed = await this.#call(
          {
            send: (exchange) => client.send(new sdk.ListTranscriptionJobsCommand(page), exchange),
            value: (output) => output,
            mask: this.#access.credentials.mask,
          },
          call,
        );
        if (listed.outcome !== 'ok') return listed;
        const { TranscriptionJobSummaries: jobs = [], NextToken } = listed.value;
        const young = jobs.filter(({ CreationTime: at }) => (at?.getTime() ?? sinceMs) >= sinceMs);
        names.push(...young.map(({ TranscriptionJobName: name = '' }) => name));
        if (NextToken === undefined) break;
        token = NextToken;
      }
    }
    return { outcome: 'ok', value: names };
  }

  /** A job that is gone counts as removed. */
  async remove(name: string, call: CallOptions): Promise<IdempotentResult<void>> {
    const { sdk, client } = await this.#open();
    const removed = await this.#call(
      {
        send: (exchange) =>
          client.send(
            new sdk.DeleteTranscriptionJobCommand({ TranscriptionJobName: name }),
            exchange,
          ),
        value: () => true,
        mask: this.#access.credentials.mask,
      },
      call,
    );
    if (removed.outcome === 'ok') return { outcome: 'ok', value: undefined };
    if (removed.outcome !== 'gone') return removed;
    // The same answer says that the job still runs.
    const look = await this.job(name, call);
    return look.outcome === 'ok' ? removed : { outcome: 'ok', value: undefined };
  }

  /** A job that Transcribe does not know is a bad request there. */
  #call<Output, Value>(
    call: AwsCall<Output, Value>,
    options: CallOptions,
  ): Promise<IdempotentResult<Value>> {
    const reread = (error: AwsError): AwsError =>
      error.code === 'BadRequestException' ? { ...error, status: 404 } : error;
    return callAws({ ...call, reread }, {}, options);
  }

  #transcriptOf(job: TranscribeSdk.TranscriptionJob | undefined): string | null {
    const recording = this.#folder.nameOf(job?.Media?.MediaFileUri ?? '');
    return recording === null ? null : (transcribePlaces(recording)?.transcript ?? null);
  }

  #open(): Promise<Opened> {
    return (this.#opened ??= this.#openClient());
  }

  async #openClient(): Promise<Opened> {
    const sdk = await import('@aws-sdk/client-transcribe');
    const { region, url: endpoint } = this.#settings;
    const client = new sdk.TranscribeClient({
      ...awsClientOptions(this.#access),
      region,
      endpoint,
    });
    return { sdk, client };
  }
}
