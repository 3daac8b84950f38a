import { OPENAI_DIALECT, type OpenAiDialect } from '../openai/dialect';

/**
 * Azure OpenAI, by its v1 API below `{resource}/openai/v1`:
 * https://learn.microsoft.com/azure/ai-services/openai/how-to/batch. Its batches do not expire: they run beyond the
 * window until they are cancelled, so only our time limits end a slow job.
 */
export const AZURE_OPENAI_DIALECT: OpenAiDialect = {
  ...OPENAI_DIALECT,
  capabilities: {
    ...OPENAI_DIALECT.capabilities,
    // The model of a line is a deployment, and a file may name one only.
    isSingleModel: true,
    maxLines: 100_000,
    // Recommended by Azure.
    minPollMs: 60_000,
  },
  processesInputs: true,
  authorize: (key) => ['api-key', key],
};
