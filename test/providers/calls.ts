import type { ResultOptions, TranslationOptions, UploadOptions } from '../../providers/provider';

export const signal = new AbortController().signal;

/** An upload of lines that name no files. */
export const UPLOAD: UploadOptions = { signal, openFile: async () => null };

/** A download of results of chat completions. */
export const RESULTS: ResultOptions = {
  signal,
  endpoint: '/v1/chat/completions',
  model: 'given',
  createdSec: 1_767_225_600,
};

/** Strict translation, as without settings. */
export const STRICT: TranslationOptions = {
  dropParams: false,
  defaultMaxTokens: 4_096,
  extraBody: {},
};
