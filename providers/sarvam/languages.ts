/** Languages of the models, each as it is spoken in India: https://docs.sarvam.ai/api/speech-to-text/apis/batch. */
const LANGUAGES: ReadonlySet<string> = new Set(
  'as bn brx doi en gu hi kn kok ks mai ml mni mr ne or pa sa sat sd ta te ur'.split(' '),
);
/** Sarvam's own code of Odia. */
const ODIA = 'od';

/** Has the language identified. */
export const UNKNOWN_LANGUAGE = 'unknown';

/** Sarvam's word for a language, such as `hi-IN`; undefined for one that it does not recognise. */
export function sarvamLanguage(language: string): string | undefined {
  const base = language.split('-')[0]?.toLowerCase() ?? '';
  if (!LANGUAGES.has(base)) return undefined;
  return `${base === 'or' ? ODIA : base}-IN`;
}

/** The language of Sarvam's word as ISO 639; null if it says none. */
export function languageOfSarvam(word: string | null): string | null {
  const base = word?.split('-')[0]?.toLowerCase() ?? '';
  if (base === '' || base === UNKNOWN_LANGUAGE) return null;
  return base === ODIA ? 'or' : base;
}
