import type * as BedrockSdk from '@aws-sdk/client-bedrock';
import { callAws, createAtAws } from '../aws/aws-call';
import { awsClientOptions, type AwsAccess } from '../aws/aws-client';
import type { CallOptions, CreateResult, IdempotentResult, NewJob, SendOptions } from '../provider';
import type { BedrockKind, ProviderConnection } from '../provider-settings';
import type { RemoteFolder } from '../remote-folder';
import { createRequest } from './job-request';
import { readBedrockJob, type BedrockJob } from './job-state';

/** The client of the SDK. It is loaded at the first call, which takes about 0.2 s. */
interface Opened {
  readonly sdk: typeof BedrockSdk;
  readonly client: BedrockSdk.BedrockClient;
}

/** A job in the list. */
export type ListedJob = BedrockSdk.ModelInvocationJobSummary & {
  readonly jobArn: string;
  readonly jobName: string;
};

/** Which jobs are listed. */
export interface JobFilter {
  /** A part of their names. */
  readonly nameContains: string;
  /** When they were submitted, Unix ms. */
  readonly afterMs: number;
}

const PAGE_SIZE = 100;

/** The calls of Amazon Bedrock, each classified. */
export class BedrockApi {
  readonly #settings: ProviderConnection & BedrockKind;
  readonly #access: AwsAccess;
  readonly #folder: RemoteFolder;
  #opened: Promise<Opened> | null = null;

  constructor(settings: ProviderConnection & BedrockKind, access: AwsAccess, folder: RemoteFolder) {
    this.#settings = settings;
    this.#access = access;
    this.#folder = folder;
  }

  /** Creates a job. A repeated token creates no second one. */
  async create(job: NewJob, call: SendOptions): Promise<CreateResult> {
    const { sdk, client } = await this.#open();
    const { roleArn } = this.#settings;
    const request = createRequest(job, { folder: this.#folder, roleArn });
    return createAtAws(
      {
        send: (exchange) => client.send(new sdk.CreateModelInvocationJobCommand(request), exchange),
        value: ({ jobArn: externalId }) =>
          externalId === undefined || externalId === '' ? null : { externalId, createdAtMs: null },
        mask: this.#mask,
      },
      call,
    );
  }

  /** One look at a job; `gone` without one of this ARN. */
  async job(jobIdentifier: string, call: CallOptions): Promise<IdempotentResult<BedrockJob>> {
    const { sdk, client } = await this.#open();
    const mask = this.#mask;
    return callAws(
      {
        send: (exchange) =>
          client.send(new sdk.GetModelInvocationJobCommand({ jobIdentifier }), exchange),
        value: (output) => readBedrockJob(output, mask),
        mask,
      },
      {},
      call,
    );
  }

  /** The jobs of a filter, newest first. It costs one call per hundred jobs. */
  async list(
    { nameContains, afterMs }: JobFilter,
    call: CallOptions,
  ): Promise<IdempotentResult<readonly ListedJob[]>> {
    const { sdk, client } = await this.#open();
    const filter = {
      nameContains,
      submitTimeAfter: new Date(afterMs),
      sortBy: 'CreationTime',
      sortOrder: 'Descending',
      maxResults: PAGE_SIZE,
    } as const;
    const jobs: ListedJob[] = [];
    for (let nextToken: string | undefined; ;) {
      const command = new sdk.ListModelInvocationJobsCommand({ ...filter, nextToken });
      const page = await callAws(
        {
          send: (exchange) => client.send(command, exchange),
          value: readPage,
          mask: this.#mask,
        },
        {},
        call,
      );
      if (page.outcome !== 'ok') return page;
      jobs.push(...page.value.jobs);
      if (page.value.next === null) return { outcome: 'ok', value: jobs };
      nextToken = page.value.next;
    }
  }

  /** Asks to stop a job. Refused if the job has ended. */
  async stop(jobIdentifier: string, call: CallOptions): Promise<IdempotentResult<true>> {
    const { sdk, client } = await this.#open();
    return callAws(
      {
        send: (exchange) =>
          client.send(new sdk.StopModelInvocationJobCommand({ jobIdentifier }), exchange),
        value: () => true as const,
        mask: this.#mask,
      },
      {},
      call,
    );
  }

  get #mask(): (text: string) => string {
    return this.#access.credentials.mask;
  }

  #open(): Promise<Opened> {
    return (this.#opened ??= this.#openClient());
  }

  async #openClient(): Promise<Opened> {
    const sdk = await import('@aws-sdk/client-bedrock');
    const { region, url: endpoint } = this.#settings;
    const client = new sdk.BedrockClient({ ...awsClientOptions(this.#access), region, endpoint });
    return { sdk, client };
  }
}

/** Null if a job cannot be read: one that is not recognised would be created a second time. */
function readPage({
  invocationJobSummaries: listed = [],
  nextToken,
}: BedrockSdk.ListModelInvocationJobsCommandOutput): {
  readonly jobs: readonly ListedJob[];
  readonly next: string | null;
} | null {
  const jobs = listed.filter(
    (one): one is ListedJob => one.jobArn !== undefined && one.jobName !== undefined,
  );
  return jobs.length === listed.length ? { jobs, next: nextToken ?? null } : null;
}
