'use strict';

/** Prompts that share prefixes in three ways, in random order. The same on every run. */
const BYTES_PER_TOKEN = 4;
const SYLLABLES = 'ka to mi re su no ha li pe ro da gu'.split(' ');

/**
 * Each dataset takes a divisor of its size and returns lines: the raw bytes of the prompt, and those of its
 * system prompt.
 */
const DATASETS = {
  /** Many users of a few applications. */
  'A: 32 system prompts': (divisor) => {
    const text = texts(1);
    const systems = Array.from({ length: 32 }, () => text(2048));
    const count = Math.floor(3000 / divisor);
    return lines(1, count, (i) => [systems[i % 32], text(1440)]);
  },
  /** Questions about documents. */
  'B: 300 documents × 10 questions': (divisor) => {
    const text = texts(2);
    const system = text(500);
    const documents = Array.from({ length: Math.floor(300 / divisor) }, () => text(3000));
    return lines(2, documents.length * 10, (i) => [
      system,
      documents[i % documents.length] + text(63),
    ]);
  },
  /** Applications with examples, documents and questions: four levels. */
  'C: 4 systems × 10 examples × 20 documents × 4 questions': (divisor) => {
    const text = texts(3);
    const systems = Array.from({ length: 4 }, () => text(1000));
    const examples = systems.map(() => Array.from({ length: 10 }, () => text(1500)));
    const documents = Array.from({ length: Math.floor(800 / divisor) }, () => text(1500));
    return lines(3, documents.length * 4, (i) => {
      const document = i % documents.length;
      const [system, example] = [document % 4, Math.floor(document / 4) % 10];
      return [systems[system], examples[system][example] + documents[document] + text(100)];
    });
  },
};

/** The lines of each tenant: questions about documents of its own. */
function tenantsWithDocuments(count, documentsEach) {
  const text = texts(4);
  return Array.from({ length: count }, (_, tenant) => {
    const system = text(500);
    const documents = Array.from({ length: documentsEach }, () => text(3000));
    return lines(4 + tenant, documentsEach * 10, (i) => [
      system,
      documents[i % documentsEach] + text(63),
    ]);
  });
}

/** `count` lines in random order; `parts(i)` are system and user text of the i-th one. */
function lines(seed, count, parts) {
  const random = generator(seed + 100);
  const all = Array.from({ length: count }, (_, i) => {
    const [system, user] = parts(i);
    const messages = [
      { role: 'system', content: system },
      { role: 'user', content: user },
    ];
    return { prompt: Buffer.from(JSON.stringify(messages)), system: Buffer.from(system) };
  });
  for (let i = all.length - 1; i > 0; i--) {
    const other = random() % (i + 1);
    [all[i], all[other]] = [all[other], all[i]];
  }
  return all;
}

/** Random texts of a number of tokens. */
function texts(seed) {
  const random = generator(seed);
  return (tokens) => {
    let text = '';
    while (text.length < tokens * BYTES_PER_TOKEN)
      text += `${SYLLABLES[random() % 12]}${SYLLABLES[random() % 12]} `;
    return text.slice(0, tokens * BYTES_PER_TOKEN);
  };
}

/** Lehmer's generator. */
function generator(seed) {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647);
}

module.exports = { DATASETS, tenantsWithDocuments };
