import { createAnthropicProvider } from './anthropic/adapter';
import { createTranscribeProvider } from './aws-transcribe/adapter';
import { createAzureSpeechProvider } from './azure-speech/adapter';
import { AZURE_OPENAI_DIALECT } from './azure-openai/dialect';
import { createBedrockProvider } from './bedrock/adapter';
import { createGoogleSpeechProvider } from './google-speech/adapter';
import { createGeminiProvider } from './gemini/adapter';
import { GROQ_DIALECT } from './groq/dialect';
import { MISTRAL_DIALECT } from './mistral/dialect';
import { NIGHTSHIFT_DIALECT } from './nightshift/dialect';
import { createOpenAiProvider } from './openai/adapter';
import { OPENAI_DIALECT, type OpenAiDialect } from './openai/dialect';
import type { Provider } from './provider';
import type { OpenAiKind, ProviderSettings } from './provider-settings';
import { createSarvamProvider } from './sarvam/adapter';
import { TOGETHER_DIALECT } from './together/dialect';
import { createVertexProvider } from './vertex/adapter';

const DIALECTS: Readonly<Record<OpenAiKind['type'], OpenAiDialect>> = {
  openai: OPENAI_DIALECT,
  azure_openai: AZURE_OPENAI_DIALECT,
  nightshift: NIGHTSHIFT_DIALECT,
  mistral: MISTRAL_DIALECT,
  groq: GROQ_DIALECT,
  together: TOGETHER_DIALECT,
};

/**
 * Opens the adapter for one entry of `providers`. No connection is made before the first call.
 * @throws config_invalid if its credential cannot be read
 */
export function openProvider(settings: ProviderSettings): Provider {
  switch (settings.type) {
    case 'openai':
    case 'azure_openai':
    case 'nightshift':
    case 'mistral':
    case 'groq':
    case 'together':
      return createOpenAiProvider(DIALECTS[settings.type], settings);
    case 'sarvam':
      return createSarvamProvider(settings);
    case 'azure_speech':
      return createAzureSpeechProvider(settings);
    case 'aws_transcribe':
      return createTranscribeProvider(settings);
    case 'bedrock':
      return createBedrockProvider(settings);
    case 'anthropic':
      return createAnthropicProvider(settings);
    case 'google_speech':
      return createGoogleSpeechProvider(settings);
    case 'gemini':
      return createGeminiProvider(settings);
    case 'vertex':
      return createVertexProvider(settings);
  }
}
