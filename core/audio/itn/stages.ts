import type { PostProcessing } from '../post-processing';
import { englishNumbers } from './english';

/** The stages that settings may name. */
export const STAGES = {
  'itn-en': (text, { language }) => (language === 'en' ? englishNumbers(text) : text),
} as const satisfies Record<string, PostProcessing>;
