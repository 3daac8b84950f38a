import type { ApiKeyFile } from '../platform/api-key-file';
import type { ConnectionPoolOptions } from '../platform/http-client/pool';

/** How a provider of any type is reached. */
export interface ProviderConnection {
  /** Base URL, such as `https://api.openai.com/v1`. */
  readonly url: string;
  /** The file with the key; null for a provider that takes none. */
  readonly apiKey: ApiKeyFile | null;
  readonly tls: ConnectionPoolOptions['tls'];
  /** Time limit of a call without a large body, and of a transfer in which no byte moves, ms. */
  readonly requestTimeoutMs: number;
  /** Time limit of an upload or a download, ms. */
  readonly transferTimeoutMs: number;
  /** Longest line of a result file, bytes. A longer one counts as malformed. */
  readonly maxResultLineBytes: number;
}

/** Hosts that speak OpenAI's Files and Batches API. */
export interface OpenAiKind {
  readonly type: 'openai' | 'azure_openai' | 'nightshift' | 'mistral' | 'groq' | 'together';
}

/** A folder of a bucket in S3. */
export interface S3Storage {
  readonly bucket: string;
  /** Beginning of all keys: empty, or with a slash at its end. */
  readonly prefix: string;
  /** Base URL of a service other than AWS; null for AWS. */
  readonly url: string | null;
}

/** Amazon Transcribe. Its key file holds `ACCESS_KEY_ID:SECRET_ACCESS_KEY`. */
export interface AwsTranscribeKind {
  readonly type: 'aws_transcribe';
  readonly region: string;
  /** The role with which jobs beyond the account's quota wait for their turn; null to have them refused. */
  readonly dataAccessRoleArn: string | null;
  readonly storage: S3Storage;
}

/** Anthropic's Message Batches. */
export interface AnthropicKind {
  readonly type: 'anthropic';
  /** The value of the header `anthropic-version`, such as `2023-06-01`. */
  readonly apiVersion: string;
}

/** A folder of a container in Azure Blob Storage. */
export interface AzureContainerStorage {
  /** Address of the container, such as `https://acme.blob.core.windows.net/recordings`. */
  readonly url: string;
  /** Beginning of all names: empty, or with a slash at its end. */
  readonly prefix: string;
  /** The file with a token (SAS) that may read, create, write, delete and list. It is read for each call. */
  readonly sasToken: ApiKeyFile;
}

/** Batch transcription of Azure Speech. */
export interface AzureSpeechKind {
  readonly type: 'azure_speech';
  readonly apiVersion: string;
  /** Of recordings whose lines state no language, at least one; of several, the service identifies one. */
  readonly locales: readonly string[];
  readonly storage: AzureContainerStorage;
}

/** Batch inference of Amazon Bedrock. Its key file holds `ACCESS_KEY_ID:SECRET_ACCESS_KEY`. */
export interface BedrockKind {
  readonly type: 'bedrock';
  readonly region: string;
  /** The role with which Bedrock reads inputs and writes results. */
  readonly roleArn: string;
  readonly storage: S3Storage;
}

/** Sarvam AI's batches of recordings. */
export interface SarvamKind {
  readonly type: 'sarvam';
}

/** Batch prediction at Vertex AI. Its key is that of a service account. */
export interface VertexKind {
  readonly type: 'vertex';
  /** Id of the project. */
  readonly project: string;
  /** A region, a multi-region such as `eu`, or `global`. */
  readonly location: string;
  /** Where inputs and results are. */
  readonly storage: GcsStorage;
}

/** Batch recognition of Cloud Speech-to-Text. Its key is that of a service account. */
export interface GoogleSpeechKind {
  readonly type: 'google_speech';
  /** Id of the project. */
  readonly project: string;
  /** A region, a multi-region such as `eu`, or `global`. */
  readonly location: string;
  /** Of recordings whose lines state no language, at least one. */
  readonly locales: readonly string[];
  /** Where recordings and transcripts are. */
  readonly storage: GcsStorage;
}

/** A folder of a bucket in Google Cloud Storage. */
export interface GcsStorage {
  readonly bucket: string;
  /** Beginning of all names: empty, or with a slash at its end. */
  readonly prefix: string;
  /** Base URL of the JSON API, such as `https://storage.googleapis.com`. */
  readonly url: string;
}

/** Batches of the Gemini API. */
export interface GeminiKind {
  readonly type: 'gemini';
}

/** What only some types need. */
export type ProviderKind =
  | OpenAiKind
  | AwsTranscribeKind
  | AnthropicKind
  | AzureSpeechKind
  | BedrockKind
  | SarvamKind
  | GoogleSpeechKind
  | GeminiKind
  | VertexKind;

/** What an adapter needs of one entry of `providers`. */
export type ProviderSettings = ProviderConnection & ProviderKind;
