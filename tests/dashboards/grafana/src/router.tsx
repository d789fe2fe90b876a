// The bridge between two versions of a router, which Grafana brings: here there is one version.
import type { ReactNode } from "react";

export * from "react-router-dom";

export const CompatRouter = ({ children }: { children: ReactNode }) => <>{children}</>;
export const CompatRoute = CompatRouter;
