import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// The packages are made to be loaded by Grafana, which brings some modules itself; those stand here.
export default defineConfig({
  plugins: [react()],
  resolve: {
    alias: { "react-router-dom-v5-compat": fileURLToPath(new URL("src/router.tsx", import.meta.url)) },
    dedupe: ["react", "react-dom", "rxjs"],
  },
  define: { "process.env.NODE_ENV": '"production"', "process.env": "{}", global: "globalThis" },
  build: {
    outDir: "../../../build/dashboards/page",
    emptyOutDir: true,
    target: "es2022",
    minify: false,
    chunkSizeWarningLimit: 99_999,
    rollupOptions: { shimMissingExports: true, onwarn: () => undefined },
  },
});
