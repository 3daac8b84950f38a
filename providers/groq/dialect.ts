import { isJsonObject } from '../../core/openai/json-object';
import { dataOf } from '../openai/batch-list';
import { OPENAI_DIALECT, type OpenAiDialect } from '../openai/dialect';
import { textOf } from '../openai/error-object';

const MAX_WINDOW_DAYS = 7;
const DAY_MS = 24 * 3_600_000;

/**
 * Groq, below `https://api.groq.com/openai/v1`: https://console.groq.com/docs/batch. Its files take no expiry. Its list
 * states no order, so a look-up reads all pages.
 */
export const GROQ_DIALECT: OpenAiDialect = {
  ...OPENAI_DIALECT,
  // Whole days that end before we give up, so that Groq ends the batch itself and keeps its partial results.
  completionWindow: (timeLeftMs) => {
    const days = Math.floor(timeLeftMs / DAY_MS);
    return days < 2 ? '24h' : `${Math.min(days, MAX_WINDOW_DAYS)}d`;
  },
  uploadFields: () => [['purpose', 'batch']],
  listing: {
    query: (cursor) => (cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`),
    read: (json) => {
      const data = dataOf(json);
      if (data === null || !isJsonObject(json)) return null;
      const { paging } = json;
      return { data, next: isJsonObject(paging) ? textOf(paging['next_cursor']) : null };
    },
    isNewestFirst: false,
  },
};
