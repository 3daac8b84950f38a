/** The usual region of each language, for recognisers that ask for one. */
const LOCALES: readonly string[] = (
  'af-ZA ar-SA bg-BG bn-IN ca-ES cs-CZ cy-GB da-DK de-DE el-GR en-US es-ES et-EE eu-ES fa-IR fi-FI fil-PH ' +
  'fr-FR ga-IE gl-ES gu-IN he-IL hi-IN hr-HR hu-HU hy-AM id-ID is-IS it-IT ja-JP ka-GE kk-KZ km-KH kn-IN ' +
  'ko-KR lo-LA lt-LT lv-LV mk-MK ml-IN mn-MN mr-IN ms-MY mt-MT nb-NO ne-NP nl-NL no-NO or-IN pa-IN pl-PL ' +
  'ps-AF pt-BR ro-RO ru-RU sk-SK sl-SI so-SO sq-AL sr-RS sv-SE sw-KE ta-IN te-IN th-TH tl-PH tr-TR uk-UA ' +
  'ur-IN uz-UZ vi-VN zh-CN zu-ZA'
).split(' ');
const BY_LANGUAGE = new Map(LOCALES.map((locale) => [languageOfLocale(locale), locale]));

/**
 * The tag with a region for a language: `en-US` for `en`. A tag that has a region stays as it is. Undefined for
 * a language without a usual region. Whether a recogniser has the language, it says itself.
 */
export function localeOf(language: string): string | undefined {
  return language.includes('-') ? language : BY_LANGUAGE.get(language);
}

/** The language of a tag: `en` for `en-US`. */
export function languageOfLocale(locale: string): string {
  return locale.split('-')[0]?.toLowerCase() ?? locale;
}
