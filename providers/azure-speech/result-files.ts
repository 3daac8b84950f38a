import { readRecordingName, type RecordingName } from '../audio/recording-name';
import { transcriptAnswer, unreadableRecording } from '../audio/transcript-answer';
import type { CallOptions, IdempotentResult, LineResult, ResultTotals } from '../provider';
import type { RemoteFolder } from '../remote-folder';
import { readSpeechReport, type SpeechReport } from './job-state';
import type { SpeechApi } from './speech-api';
import { readSpeechTranscript } from './transcript';

/** The report of an ended job; null if it has none yet. Two calls, and one more for each hundred files. */
export async function readReport(
  api: SpeechApi,
  externalId: string,
  call: CallOptions,
): Promise<IdempotentResult<SpeechReport | null>> {
  const files = await api.files(externalId, call);
  if (files.outcome !== 'ok') return files;
  const file = files.value.find(({ kind }) => kind === 'TranscriptionReport');
  if (file === undefined) return { outcome: 'ok', value: null };
  const content = await api.content(file, call);
  if (content.outcome !== 'ok') return content;
  return { outcome: 'ok', value: readSpeechReport(content.value.json) };
}

/** Reads the transcripts of a job, one call each, and the recordings that its report blames. */
export async function readResults(
  { api, folder }: { readonly api: SpeechApi; readonly folder: RemoteFolder },
  {
    externalId,
    take,
  }: {
    readonly externalId: string;
    readonly take: (result: LineResult) => void | Promise<void>;
  },
  call: CallOptions,
): Promise<IdempotentResult<ResultTotals>> {
  const recordingOf = (source: string): RecordingName | null =>
    readRecordingName(folder.nameOf(source)?.split('/').at(-1) ?? '');
  let [results, malformed] = [0, 0];
  const files = await api.files(externalId, call);
  if (files.outcome !== 'ok') return files;
  for (const file of files.value.filter(({ kind }) => kind === 'Transcription')) {
    const content = await api.content(file, call);
    if (content.outcome !== 'ok') return content;
    const transcript = readSpeechTranscript(content.value.json);
    const recording = recordingOf(transcript?.source ?? '');
    if (recording === null || transcript === null) malformed++;
    else {
      results++;
      await take(transcriptAnswer(recording, transcript.transcription));
    }
  }
  const report = await readReport(api, externalId, call);
  if (report.outcome !== 'ok') return report;
  for (const { source } of report.value?.failed.filter(({ isUnreadable }) => isUnreadable) ?? []) {
    const recording = recordingOf(source);
    if (recording === null) malformed++;
    else {
      results++;
      await take(unreadableRecording(recording));
    }
  }
  return { outcome: 'ok', value: { results, malformed } };
}
