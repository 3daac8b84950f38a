/**
 * Why a job has brought nothing, as far as it decides what follows. It stands beside the provider's code in the row,
 * because a provider may use the same words (docs/design/provider-jobs.md#rows).
 *
 * | reason          | meaning                                                                    |
 * |-----------------|----------------------------------------------------------------------------|
 * | `quota`         | the provider had no quota for it: a new job may be accepted later          |
 * | `lines_refused` | it failed because of single lines: the others may be submitted again       |
 * | `empty`         | no line of its part was to be sent                                         |
 * | `gone`          | the provider has forgotten it                                              |
 */
export type JobReason = 'quota' | 'lines_refused' | 'empty' | 'gone';
