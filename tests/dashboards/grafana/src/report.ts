// What each panel has shown, for the program that looks: window.report.

export interface Shown {
  title: string;
  state: string;
  series: number;
  error?: string;
}

export const report = { panels: {} as Record<number, Shown>, errors: [] as string[], ready: false };

(window as unknown as { report: typeof report }).report = report;
window.addEventListener("error", (event) => report.errors.push(event.message));
window.addEventListener("unhandledrejection", (event) => report.errors.push(String(event.reason?.stack ?? event.reason)));
