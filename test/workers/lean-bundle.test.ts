import { leanBundle } from '../../workers/lean-bundle';

const ROOT = '/home/someone/nightshift';
const MAP = {
  version: 3,
  mappings: 'AAAA',
  names: [],
  sources: [`${ROOT}/dist/workflows/batch.js`, 'webpack/runtime', `ignored|${ROOT}/node_modules/x`],
  sourcesContent: ['the whole source', ''],
};

function bundle(comment: string): string {
  return `run();\n//# sourceMappingURL=data:application/json;${comment}${base64(MAP)}`;
}

function base64(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

describe('the workflow bundle', () => {
  it.each(['base64,', 'charset=utf-8;base64,'])(
    'keeps a source map without sources and without paths of this machine (%s)',
    (comment) => {
      const lean = leanBundle(bundle(comment), ROOT);
      expect(lean.startsWith('run();\n//# sourceMappingURL=data:application/json;base64,')).toBe(
        true,
      );
      const map = JSON.parse(Buffer.from(lean.split('base64,')[1] ?? '', 'base64').toString());
      expect(map).toEqual({
        version: 3,
        mappings: 'AAAA',
        names: [],
        sources: ['dist/workflows/batch.js', 'webpack/runtime', 'ignored|node_modules/x'],
      });
    },
  );

  it('is refused without a source map, which the worker requires', () => {
    expect(() => leanBundle('run();', ROOT)).toThrow('does not end with a source map');
  });
});
