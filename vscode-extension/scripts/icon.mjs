// npm run icon: draws media/icon.png, which the Marketplace shows, from media/icon.svg. It needs
// Chromium: /usr/bin/chromium, or the one that CHROMIUM names.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const file = (ending) => fileURLToPath(new URL(`../media/icon.${ending}`, import.meta.url));
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
    const page = await browser.newPage();
    await page.setContent(`<style>body { margin: 0 }</style>${readFileSync(file('svg'), 'utf8')}`);
    const icon = page.locator('svg');
    await icon.screenshot({ path: file('png'), omitBackground: true });
} finally {
    await browser.close();
}
