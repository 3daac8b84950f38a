export async function runDoctor(): Promise<void> {}
