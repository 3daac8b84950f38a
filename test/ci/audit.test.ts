import { judge } from '../../.ci/audit.js';

function report(...severities: string[]): string {
  const vulnerabilities = Object.fromEntries(
    severities.map((severity, i) => [`p${i}`, { name: `p${i}`, severity, range: '<2' }]),
  );
  return JSON.stringify({ vulnerabilities });
}

describe('the audit of dependencies', () => {
  it('passes without vulnerabilities', () => {
    expect(judge(report()).kind).toBe('ok');
  });

  it.each(['low', 'moderate'])('shows a vulnerability of %s severity and passes', (severity) => {
    const { kind, text } = judge(report(severity));
    expect([kind, text]).toEqual(['ok', expect.stringContaining(`${severity}: p0 <2`)]);
  });

  it.each(['high', 'critical'])('fails for a vulnerability of %s severity', (severity) => {
    expect(judge(report('low', severity)).kind).toBe('vulnerable');
  });

  it.each([
    ['the service refuses', '{"message":"405 Method Not Allowed","error":{"summary":""}}', '405'],
    ['the network is down', '{"error":{"code":"ENOTFOUND","summary":"no network"}}', 'no network'],
    ['npm prints nothing', '', 'no report'],
  ])('says that nothing was checked if %s', (_why, output, reason) => {
    const { kind, text } = judge(output);
    expect(kind).toBe('unchecked');
    expect(text).toMatch(/^npm audit: not checked \(.*\)$/);
    expect(text).toContain(reason);
  });
});
